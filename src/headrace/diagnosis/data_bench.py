"""The measurements of loading in their order: from memory beside a plain copy, then the disk, then the loader cold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import msgspec
import numpy as np

from headrace.diagnosis.data_cache import PageCache
from headrace.diagnosis.data_disk import DiskTimer
from headrace.diagnosis.data_machine import memory_now, mount_of
from headrace.diagnosis.data_rounds import LEAST_ROUNDS, Spread, rounds, spread
from headrace.diagnosis.data_timing import (
    COPIED,
    Cold,
    CopyTimer,
    FromStart,
    WarmTimer,
    cold_of,
    from_start,
    populating,
)
from headrace.loading import Loader
from headrace.loading.loader import ACCESS
from headrace.loading.memory import choose_access
from headrace.loading.mixture import Mix, Mixture
from headrace.storage import TokenStore

# Of the seconds; what is left goes to opening, dropping and counting pages.
WARM_UP, WARM, COLD, DISK = 0.1, 0.4, 0.25, 0.15
COPY_SHARE = 0.25  # of a warm round
SLICE = 5  # rounds that a part of the time is divided into
NAMES = {access: name for name, access in ACCESS.items() if access is not None}  # whole -> populate
BUSY = 1.3  # by the clock for each second of processor
READING = "The loader was still reading the dataset into memory while it was measured from memory."

Progress = Callable[[str], None]


class Warm(msgspec.Struct, kw_only=True):
    loader: Spread  # tokens/s
    copy: Spread
    minor: float  # page faults a batch
    major: float
    open_seconds: float
    first_seconds: float  # of the first batch
    notes: list[str]  # what disturbed


class Colds(msgspec.Struct, kw_only=True):
    """What could be measured from dropped pages, and why not all of it."""

    loader: Cold | None = None
    sequential: Spread | None = None
    random: Spread | None = None
    reason: str | None = None


class Bench:
    """The dataset, the machine, and the loaders that are opened on it."""

    def __init__(
        self, data: Mix, *, seq_len: int | None, batch_size: int, dtype: str, memory: str, seconds: float, seed: int
    ) -> None:
        self._data, self._batch_size, self._dtype, self._seconds, self._seed = data, batch_size, dtype, seconds, seed
        self.stores = [TokenStore(name) for name in Mixture(data).names]  # never read from: a map would hold its pages
        self.seq_len = self.stores[0].chunk_size if seq_len is None else seq_len
        self.stored = max((store.dtype for store in self.stores), key=lambda kind: kind.itemsize)
        self.row_bytes = (self.seq_len + 1) * self.stored.itemsize
        self.memory = memory_now()
        self.access = NAMES[ACCESS[memory] or choose_access(store.metadata for store in self.stores)]
        files = [store.path / f"{shard.name}.bin" for store in self.stores for shard in store.shards]
        self.mount = mount_of(files[0])
        self.cache = PageCache(files, in_memory=self.mount is not None and self.mount.in_memory)

    def open(self, seed: int) -> Loader:
        return Loader(
            self._data,
            seq_len=self.seq_len,
            batch_size=self._batch_size,
            dtype=self._dtype,
            memory=self.access,
            seed=seed,
        )

    def measure_warm(self, progress: Progress) -> Warm:
        """The loader and a plain copy, in turns."""
        progress("reading it into memory")
        loader = self.open(self._seed)
        try:
            timer = WarmTimer(loader, self.row_bytes, self.memory.available)
            timer.warm_up(WARM_UP * self._seconds)
            reading = populating(WARM_UP * self._seconds)
            copy = CopyTimer(self._tokens(), (loader.local_batch_size, self.seq_len + 1), loader.dtype)
            turn = WARM * self._seconds / SLICE
            for number in rounds(WARM * self._seconds):
                progress(f"from memory, round {number + 1}")
                timer.round(turn * (1 - COPY_SHARE))
                copy.round(turn * COPY_SHARE)
        finally:
            loader.close()
        starts = [from_start(partial(self.open, self._seed), 0.0) for _ in range(LEAST_ROUNDS)]
        return Warm(
            loader=spread(timer.found),
            copy=spread(copy.found),
            minor=median(timer.minor),
            major=median(timer.major),
            open_seconds=median(one.open_seconds for one in starts),
            first_seconds=median(one.first_seconds for one in starts),
            notes=[*([READING] if reading else []), *_busy(median(copy.busy))],
        )

    def measure_cold(self, progress: Progress) -> Colds:
        """The disk and the loader from dropped pages, as far as pages can be dropped."""
        disk = DiskTimer(self.cache, self.row_bytes, self._seed)
        for number in rounds(DISK * self._seconds):
            progress(f"the disk, round {number + 1}")
            if reason := disk.round(DISK * self._seconds / SLICE / 2):
                return Colds(reason=reason)
        found: list[FromStart] = []
        for number in rounds(COLD * self._seconds):
            progress(f"from a cold disk, round {number + 1}")
            if reason := self.cache.drop():
                return Colds(sequential=disk.sequential(), random=disk.random(), reason=reason)
            # Other rows in each round.
            found.append(from_start(partial(self.open, self._seed + number), COLD * self._seconds / SLICE))
        return Colds(loader=cold_of(found), sequential=disk.sequential(), random=disk.random())

    def _tokens(self) -> Any:
        """Some of the dataset in memory of its own."""
        store = TokenStore(self.stores[0].path)
        return np.array(store.tokens(0, min(store.total_tokens, COPIED // store.dtype.itemsize)))


def _busy(usual: float) -> Iterator[str]:
    if usual > BUSY:
        yield f"The machine was busy: {usual:.1f} s by the clock for a second of processor. All rates are by the clock."
