"""Storage with a limit, for bench/plan.py: input files give so many bytes a second to all processes together.

With this folder on PYTHONPATH every process of a run reads files below HEADRACE_SLOW_FOLDER through one queue: a file
that holds the time at which the storage is free again, under a lock. What a real storage shares out by its bandwidth is
shared out here by sleeping.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import os
import struct
import time
from typing import Any

FOLDER, QUEUE = os.environ.get("HEADRACE_SLOW_FOLDER"), os.environ.get("HEADRACE_SLOW_QUEUE")
RATE = float(os.environ.get("HEADRACE_SLOW_BYTES_PER_S", "inf"))
really_open = builtins.open


class SlowFile(io.FileIO):
    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        wait(len(data))
        return data


def wait(size: int) -> None:
    """Until the storage has given so many bytes, behind all that was asked for before."""
    assert QUEUE is not None
    with really_open(QUEUE, "r+b", buffering=0) as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        (free,) = struct.unpack("<d", queue.read(8))
        free = max(free, time.monotonic()) + size / RATE
        queue.seek(0)
        queue.write(struct.pack("<d", free))
    time.sleep(max(0.0, free - time.monotonic()))


def slow_open(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any) -> Any:
    if mode == "rb" and buffering == 0 and str(file).startswith(str(FOLDER)):
        return SlowFile(file)
    return really_open(file, mode, buffering, *more, **named)


if FOLDER and QUEUE:
    builtins.open = slow_open
