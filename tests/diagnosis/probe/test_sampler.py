"""The sampler stops for a fork and goes on, and tells who makes batches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.diagnosis.probe.batch_makers import makes_batches
from headrace.diagnosis.probe.recording import Recording
from headrace.diagnosis.probe.sampler import Sampler


@pytest.fixture
def recording() -> Iterator[Recording]:
    before = sys.getswitchinterval()
    yield Recording(warmup=1)
    sys.setswitchinterval(before)


def alive() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "headrace-probe"]


def test_no_thread_is_there_while_it_is_stopped(recording: Recording) -> None:
    sampler = Sampler(recording, lambda: None)
    sampler.start()
    assert len(alive()) == 1
    sampler.stop()
    assert alive() == []
    sampler.start()
    assert len(alive()) == 1
    sampler.stop()


def frames_of(name: str, recording: Recording) -> list[Any]:
    """As a sample finds them: a function of the user's with this name, called by the loop."""
    scope: dict[str, Any] = {"sys": sys}
    source = f"def {name}():\n    return sys._getframe()\ndef loop():\n    return {name}(), sys._getframe()\n"
    exec(compile(source, "/home/me/train.py", "exec"), scope)
    called, loop = scope["loop"]()
    recording.loop.add(loop.f_code)
    return [called, loop]


@pytest.mark.parametrize(
    ("name", "computing", "makes"),
    [
        ("get_batch", False, True),
        ("get_batch", True, True),  # as in nanoGPT, between forward and backward
        ("draw", False, True),
        ("contrastive", True, False),  # computes the loss
        ("save_batch", True, False),
        ("log_metrics", False, False),
    ],
)
def test_functions_that_make_batches(recording: Recording, name: str, computing: bool, makes: bool) -> None:
    recording.computing = computing
    assert makes_batches(recording, frames_of(name, recording)) is makes
