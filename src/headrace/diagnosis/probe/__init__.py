"""The probe: runs inside anybody's script and notes where the time of its steps goes. Standard library only.

It is loaded by `inject/sitecustomize.py` under a name of its own, in environments that need not have headrace; that
is why its modules import each other relatively, against the habit of this codebase.
"""
# ruff: noqa: TID252

from __future__ import annotations

import os

from . import (
    compile_hooks,
    console_hooks,
    data_hooks,
    dump,
    hooks,
    optimizer_hooks,
    sync_hooks,
    tokenizer_hooks,
    torch_hooks,
)
from .recording import Recording
from .sampler import Sampler

WORKER_INTERVAL = 1.0  # a worker is not sampled, it only writes what it has every second


def install(folder: str, warmup: int) -> Recording:
    """Watch this process from now on, and write what was seen into the folder."""
    recording = Recording(warmup)
    writer = dump.Writer(folder, recording)
    console_hooks.install(recording)
    data_hooks.watch_files(recording)
    for module in (
        torch_hooks, optimizer_hooks, compile_hooks, sync_hooks, data_hooks, console_hooks, tokenizer_hooks,
    ):  # fmt: skip
        for name, hook in module.HOOKS.items():
            hooks.after_import(name, hook, recording)
    hooks.install()
    recording.sampler = Sampler(recording, writer.write)
    recording.sampler.start()
    writer.install()
    # Python 3.12 warns of a fork beside a thread, and is right: the sampler's might hold a lock.
    os.register_at_fork(
        before=lambda: _stop(recording),
        after_in_parent=lambda: _go_on(recording),
        after_in_child=lambda: _forked(recording, writer),
    )
    return recording


def _stop(recording: Recording) -> None:
    recording.sampler.stop()


def _go_on(recording: Recording) -> None:
    recording.sampler.start()


def _forked(recording: Recording, writer: dump.Writer) -> None:
    """A forked child counts for itself; threads do not come along."""
    recording.reset()
    writer.forked()
    recording.forked = True
    recording.sampler = Sampler(recording, writer.write, interval=WORKER_INTERVAL, stacks=False)
    recording.sampler.start()
