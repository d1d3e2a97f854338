"""The command line inside the test's own process: the same words and exit codes, without five seconds of imports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    stdout: str
    stderr: str


Headrace = Callable[..., Done]


@pytest.fixture
def headrace_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Headrace]:
    import torch

    from headrace.cli import main

    before, threads = signal.getsignal(signal.SIGTERM), torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors: threads would only wait for each other

    def run(*words: object, check: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["headrace", *map(str, words)])
        return finish(main, capsys, check)

    yield run
    signal.signal(signal.SIGTERM, before)
    torch.set_num_threads(threads)


def finish(call: Callable[[], object], capsys: pytest.CaptureFixture[str], check: int) -> Done:
    """What the call printed, once its exit code is the expected one."""
    capsys.readouterr()
    code: object = 0
    try:
        call()
    except SystemExit as stop:
        code = stop.code
    done = Done(*capsys.readouterr())
    assert code == check, f"exit {code}\n{done.stdout}\n{done.stderr}"
    return done
