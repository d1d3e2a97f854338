"""The worker process: orders come in on stdin, messages go out on stdout, one JSON object a line.

A process of its own rather than multiprocessing: a script that calls `headrace.prepare` needs no `__main__` guard,
a dead parent is seen as the end of stdin, and a crashed worker takes nothing with it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from headrace.errors import HeadraceError
from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.results import Advanced, Differs, Failed, Job, Message, Order, RunTask
from headrace.pipeline.worker import EngineDiffers, Report, TaskRunner
from headrace.tokenizers.fast import one_thread_each

REPORT_EVERY = 0.2  # seconds

Send = Callable[[Message], None]


def attempt(runner: TaskRunner, order: RunTask, send: Send, every: float = REPORT_EVERY) -> Message:
    """Do a task, and turn every way it can end into a message."""
    index = order.task.index
    try:
        return runner.run(order.task, order.engine, _now_and_then(index, send, every))
    except EngineDiffers as error:
        return Differs(index, error.engine, error.mismatch, error.reason)
    except HeadraceError as error:
        return Failed(index, type(error).__name__, str(error), "")
    except Exception as error:
        return Failed(index, type(error).__name__, str(error), traceback.format_exc())


def _now_and_then(index: int, send: Send, every: float) -> Report:
    """Report a few times a second, not after each batch."""
    due, parent = time.monotonic(), os.getppid()

    def report(counts: Counts, stages: Stages) -> None:
        nonlocal due
        if os.getppid() != parent:
            os._exit(1)  # the run was killed; whoever goes on with it does this task again
        if time.monotonic() >= due:
            due = time.monotonic() + every
            send(Advanced(index, counts, stages))

    return report


def serve(orders: BinaryIO, out: BinaryIO) -> None:
    encode = msgspec.json.Encoder().encode
    decode = msgspec.json.Decoder(Order).decode

    def send(message: Message) -> None:
        out.write(encode(message) + b"\n")
        out.flush()

    runner: TaskRunner | None = None
    for line in orders:
        order = decode(line)
        if isinstance(order, Job):
            runner = TaskRunner(order)
        elif runner is not None:
            send(attempt(runner, order, send))


def _import_ahead() -> None:
    """30-50 ms that most jobs need, while the parent plans; if it fails, loading the engine says why."""
    with contextlib.suppress(Exception):
        import gigatoken  # noqa: F401


def main() -> None:
    one_thread_each()
    # Native code may print to stdout, so the messages get a descriptor of their own.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _import_ahead()
        serve(sys.stdin.buffer, out)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)
