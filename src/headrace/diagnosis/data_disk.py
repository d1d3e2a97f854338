"""How fast the disk gives the shards' bytes: one after the other, and a row here and there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from headrace.diagnosis.data_cache import PageCache
from headrace.diagnosis.data_rounds import Spread, spread

PIECE = 1 << 20  # bytes of a sequential read
FILES = 64  # that random reads go to, so that descriptors last
READS = 4096  # random ones in a round, at most


class DiskTimer:
    """Reads of pages that were dropped before each round, one at a time, by pread: no map, no page fault, no loader."""

    def __init__(self, cache: PageCache, row_bytes: int, seed: int) -> None:
        self._cache, self._row, self._rng = cache, row_bytes, np.random.default_rng(seed)
        self._buffer = bytearray(max(PIECE, row_bytes))
        self.reads: list[float] = []  # bytes/s of each round
        self.rows: list[float] = []

    def round(self, seconds: float) -> str | None:
        """One round of both; the reason if there could be none."""
        for found, places in ((self.reads, self._in_order), (self.rows, self._at_random)):
            if reason := self._cache.drop():
                return reason
            with ExitStack() as opened:
                found.append(self._read(places(opened), seconds))
        return None

    def sequential(self) -> Spread:
        return spread(self.reads)

    def random(self) -> Spread:
        return spread(self.rows)

    def _read(self, places: Iterator[tuple[int, int, int]], seconds: float) -> float:
        """Bytes/s; opening files is not counted."""
        count, used, view = 0, 0.0, memoryview(self._buffer)
        for descriptor, offset, length in places:
            began = time.perf_counter()
            count += os.preadv(descriptor, [view[:length]], offset)
            used += time.perf_counter() - began
            if used >= seconds:
                break
        return count / max(used, 1e-9)

    def _in_order(self, opened: ExitStack) -> Iterator[tuple[int, int, int]]:
        files = self._cache.files
        first = int(self._rng.integers(len(files)))
        for file in (*files[first:], *files[:first]):
            with ExitStack() as one:
                descriptor = _open(file, one)
                for offset in range(0, file.stat().st_size, PIECE):
                    yield descriptor, offset, PIECE

    def _at_random(self, opened: ExitStack) -> Iterator[tuple[int, int, int]]:
        files = self._some_files()
        descriptors = [_open(file, opened) for file in files]
        for descriptor in descriptors:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
        ends = np.cumsum([max(1, file.stat().st_size // self._row) for file in files])
        numbers = dict.fromkeys(
            self._rng.integers(int(ends[-1]), size=READS).tolist()
        )  # none twice: it would be cached
        for number in numbers:
            at = int(np.searchsorted(ends, number, side="right"))
            before = int(ends[at - 1]) if at else 0
            yield descriptors[at], (number - before) * self._row, self._row

    def _some_files(self) -> Sequence[Path]:
        files = self._cache.files
        if len(files) <= FILES:
            return files
        return [files[i] for i in self._rng.choice(len(files), FILES, replace=False)]


def _open(file: Path, stack: ExitStack) -> int:
    descriptor = os.open(file, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    return descriptor
