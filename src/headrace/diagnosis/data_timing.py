"""The loader at work: from memory, from a cold disk, and what a plain copy of the same tokens takes."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.diagnosis.data_rounds import Spread, spread
from headrace.loading import Loader
from headrace.loading.buffers import allocate

LEAST_BATCHES = 8  # of a window
WINDOW_SHARE = 0.25  # of the memory that is available: what is read again has to be there still
COPIED = 64 << 20  # bytes to copy from: no processor's cache holds them, and the loader's rows come from memory too
POPULATING = "headrace-populate"  # the thread of storage/mapping.py


class Use(msgspec.Struct, frozen=True):
    """What a process has used so far."""

    minor: int
    major: int
    read_bytes: int | None  # from disk; None where the system does not count them

    @classmethod
    def now(cls, io: Path = Path("/proc/self/io")) -> Use:
        """Of all its threads: whoever finds no batch filled gathers one, the loader's thread or its caller."""
        found = resource.getrusage(resource.RUSAGE_SELF)
        return cls(found.ru_minflt, found.ru_majflt, _read_bytes(io))


def _read_bytes(io: Path) -> int | None:
    try:
        lines = dict(line.split(": ") for line in io.read_text().splitlines())
        return int(lines["read_bytes"])
    except (OSError, KeyError, ValueError):
        return None


class WarmTimer:
    """The same batches again and again: after the first time their pages are in memory, whatever the dataset's size."""

    def __init__(self, loader: Loader, row_bytes: int, available: int) -> None:
        self.loader = loader
        self._start = loader.state_dict()
        room = WINDOW_SHARE * available / (row_bytes * loader.local_batch_size)
        self._most = max(LEAST_BATCHES, int(min(room, max(loader.steps_per_epoch, 1))))
        self.batches, self._whole = self._most, False
        self.found: list[float] = []  # tokens/s
        self.minor: list[float] = []  # faults a batch
        self.major: list[float] = []

    def warm_up(self, seconds: float) -> None:
        """Touch the window's pages, and make it so large that this takes about so long."""
        started, count = time.perf_counter(), 0
        while count < self._most and (count < LEAST_BATCHES or time.perf_counter() - started < seconds):
            next(self.loader)
            count += 1
        self.batches, self._whole = count, count >= self.loader.steps_per_epoch

    def round(self, seconds: float) -> None:
        used, count, before = 0.0, 0, Use.now()
        while used < seconds:
            used += self._window()
            count += self.batches
        after = Use.now()
        self.minor.append((after.minor - before.minor) / count)
        self.major.append((after.major - before.major) / count)
        self.found.append(count * self.loader.local_batch_size * self.loader.seq_len / used)

    def _window(self) -> float:
        """Seconds of its batches; the first of a start, which makes the buffers and the thread, comes before."""
        if not self._whole:  # else everything was touched, and the next epoch is as good
            self.loader.load_state_dict(self._start)
            next(self.loader)
        began = time.perf_counter()
        for _ in range(self.batches):
            next(self.loader)
        return time.perf_counter() - began


def populating(seconds: float) -> bool:
    """Whether a dataset is still being read into memory after waiting so long for it."""
    for thread in threading.enumerate():
        if thread.name == POPULATING:
            thread.join(seconds)
            return thread.is_alive()
    return False


class FromStart(msgspec.Struct, kw_only=True):
    """A loader from its start: opening, the first batch, and what followed until the time or the epoch was over."""

    open_seconds: float
    first_seconds: float
    tokens_per_second: float
    batches: int
    minor: float  # page faults a batch
    major: float
    read_bytes: float | None  # a batch, from disk


def from_start(open_loader: Callable[[], Loader], seconds: float) -> FromStart:
    before, began = Use.now(), time.perf_counter()
    loader = open_loader()
    opened = time.perf_counter()
    most, count = max(1, loader.steps_per_epoch), 1
    next(loader)
    first = now = time.perf_counter()
    while count < most and now - opened < seconds:
        next(loader)
        count, now = count + 1, time.perf_counter()
    after = Use.now()
    loader.close()
    read = None if before.read_bytes is None or after.read_bytes is None else after.read_bytes - before.read_bytes
    return FromStart(
        open_seconds=opened - began,
        first_seconds=first - opened,
        tokens_per_second=count * loader.local_batch_size * loader.seq_len / max(now - opened, 1e-9),
        batches=count,
        minor=(after.minor - before.minor) / count,
        major=(after.major - before.major) / count,
        read_bytes=None if read is None else read / count,
    )


class Cold(msgspec.Struct, kw_only=True):
    """All rounds from dropped pages together."""

    tokens_per_second: Spread
    open_seconds: Spread
    first_seconds: Spread
    batches: int
    minor: float
    major: float
    read_bytes: float | None


def cold_of(found: list[FromStart]) -> Cold:
    read = [one.read_bytes for one in found if one.read_bytes is not None]
    return Cold(
        tokens_per_second=spread([one.tokens_per_second for one in found]),
        open_seconds=spread([one.open_seconds for one in found]),
        first_seconds=spread([one.first_seconds for one in found]),
        batches=int(median(one.batches for one in found)),
        minor=median(one.minor for one in found),
        major=median(one.major for one in found),
        read_bytes=median(read) if read else None,
    )


class CopyTimer:
    """What no loader on one core can beat: batch after batch of tokens that lie in memory, copied and widened."""

    def __init__(self, tokens: NDArray[Any], shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        size = shape[0] * shape[1]
        self._batches = np.resize(tokens, (max(1, len(tokens) // size), *shape))
        self._out = allocate(shape, dtype, pin=False)
        self._tokens = shape[0] * (shape[1] - 1)  # as a loader counts them: the last of a row is only a target
        self.found: list[float] = []  # tokens/s
        self.busy: list[float] = []  # seconds by the clock for one of the processor; above 1 others had it

    def round(self, seconds: float) -> None:
        began, count, cpu = time.perf_counter(), 0, time.thread_time()
        while (used := time.perf_counter() - began) < seconds or not count:
            for batch in self._batches:
                np.copyto(self._out, batch, casting="unsafe")
            count += len(self._batches)
        self.found.append(count * self._tokens / used)
        self.busy.append(used / max(time.thread_time() - cpu, 1e-9))
