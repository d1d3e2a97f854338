"""Loader: batches for any training loop, gathered ahead by a thread, in an order that never changes.

One process, no shared memory, no locks on disk: after kill -9 there is nothing to clean. The buffers are made once and
used again, because a new one for each batch costs more in page faults than the copy itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import UsageError
from headrace.loading.datasets import ChunkRange, fingerprint, open_datasets
from headrace.loading.feed import Batch, Feed
from headrace.loading.gather import Gatherer
from headrace.loading.mixture import Mix, Mixture
from headrace.loading.sampler import Progress, Sampler
from headrace.storage import TRAIN

DTYPES = ("int64", "int32", "uint16")
STATE_VERSION = 1
SAME = ("version", "seed", "shuffle", "seq_len", "batch_size", "fingerprints")  # must be as they were to resume


class WaitStatistics(NamedTuple):
    batches: int
    wait_seconds: float
    max_wait_seconds: float


class Loader:
    """An endless iterator of batches over one dataset or a mixture.

    `batch_size` counts the sequences of a step over all ranks; each rank gets its equal part. So a run may go on with
    another number of ranks and still sees the same batches.
    """

    def __init__(
        self,
        data: Mixture | Mix,
        *,
        seq_len: int,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        split: str = TRAIN,
        holdout: float = 0.0,
        rank: int = 0,
        world_size: int = 1,
        dtype: str = "int64",
        prefetch: int = 4,
        documents: bool = False,
    ) -> None:
        _check(seq_len, batch_size, rank, world_size, dtype, prefetch, holdout)
        self.seq_len, self.batch_size, self.rank, self.world_size = seq_len, batch_size, rank, world_size
        self.mixture = data if isinstance(data, Mixture) else Mixture(data)
        self.seed, self.shuffle, self.dtype, self.prefetch = seed, shuffle, np.dtype(dtype), prefetch
        self._documents, self._split, self._holdout = documents, split, holdout
        self._datasets = self._open()
        _check_dtype(self._datasets, dtype)
        self._step = 0
        self._waits = WaitStatistics(0, 0.0, 0.0)
        self._feed: Feed | None = None

    @property
    def local_batch_size(self) -> int:
        return self.batch_size // self.world_size

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which a run sees as many chunks as the datasets hold together."""
        return sum(dataset.count for dataset in self._datasets) // self.batch_size

    @property
    def step(self) -> int:
        """How many batches have been given out, in all runs together."""
        return self._step

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._feed is None:
            self._feed = self._start()
        started = time.perf_counter()
        batch = self._feed.next()
        waited = time.perf_counter() - started
        count, total, longest = self._waits
        self._waits = WaitStatistics(count + 1, total + waited, max(longest, waited))
        self._step += 1
        return batch

    def progress(self) -> list[Progress]:
        """Samples and epochs of each dataset so far."""
        return self._sampler().progress(self._step * self.batch_size)

    def wait_statistics(self) -> WaitStatistics:
        """How long batches were waited for; the first of a run includes starting the thread."""
        return self._waits

    def change_mixture(self, mix: Mix) -> None:
        """Draw in other proportions from the next batch on; nothing is repeated or skipped."""
        if not self._step:
            raise UsageError("No batch has been given out yet: name the mixture when you open the loader.")
        self._stop()
        self.mixture = self.mixture.with_change(self._step * self.batch_size, mix)
        self._datasets = self._open(self._datasets)

    def state_dict(self) -> dict[str, Any]:
        """A few integers, and what the data are known by."""
        return {
            "version": STATE_VERSION,
            "step": self._step,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "seq_len": self.seq_len,
            "batch_size": self.batch_size,
            "mixture": self.mixture.state(),
            "fingerprints": [fingerprint(dataset) for dataset in self._datasets],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken; refuses another dataset or other settings, with the difference."""
        mine = self.state_dict()
        lines = [
            f"  {name}: {state.get(name)!r} then, {mine[name]!r} now" for name in SAME if state.get(name) != mine[name]
        ]
        if lines:
            listed = "\n".join(lines)
            raise UsageError(
                f"This state belongs to other data or settings:\n{listed}\nOpen the loader as it was then."
            )
        self._stop()
        saved = Mixture.from_state(state["mixture"])
        self.mixture = _renamed(saved, dict(zip(saved.names, self.mixture.names, strict=True)))
        self._step = int(state["step"])

    def close(self) -> None:
        self._stop()

    def _open(self, opened: Sequence[ChunkRange] = ()) -> list[ChunkRange]:
        return open_datasets(self.mixture.names, opened, seq_len=self.seq_len, split=self._split, holdout=self._holdout)

    def _sampler(self) -> Sampler:
        sizes = [dataset.count for dataset in self._datasets]
        return Sampler(self.mixture, sizes, seed=self.seed, shuffle=self.shuffle)

    def _start(self) -> Feed:
        part = self.local_batch_size
        share = slice(self.rank * part, (self.rank + 1) * part)
        gatherer = Gatherer(
            self._sampler(), self._datasets, seq_len=self.seq_len, batch_size=self.batch_size, share=share
        )
        buffers = [np.zeros((part, self.seq_len + 1), self.dtype) for _ in range(self.prefetch + 1)]
        feed = Feed(gatherer, buffers, self._step, with_boundaries=self._documents)
        weakref.finalize(self, feed.stop)
        return feed

    def _stop(self) -> None:
        if self._feed is not None:
            self._feed.stop()
            self._feed = None


def _renamed(mixture: Mixture, names: dict[str, str]) -> Mixture:
    """The same mixture where the data has moved: datasets are known by their fingerprints, not by their paths."""

    def moved(shares: Any) -> Any:
        return {names[k]: v for k, v in shares.items()} if isinstance(shares, dict) else [names[k] for k in shares]

    changes = {sample: moved(shares) for sample, shares in mixture.changes.items()}
    return Mixture(changes.pop(0), changes=changes)


def _check(
    seq_len: int, batch_size: int, rank: int, world_size: int, dtype: str, prefetch: int, holdout: float
) -> None:
    for name, value in (
        ("seq_len", seq_len),
        ("batch_size", batch_size),
        ("world_size", world_size),
        ("prefetch", prefetch),
    ):
        if value < 1:
            raise UsageError(f"{name} {value}: it must be at least 1.")
    if not 0 <= rank < world_size:
        raise UsageError(f"rank {rank}: with a world size of {world_size} ranks are 0 to {world_size - 1}.")
    if batch_size % world_size:
        raise UsageError(
            f"batch_size {batch_size} counts the sequences of all ranks and cannot be shared by {world_size} of them. "
            f"Take a multiple of {world_size}."
        )
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype!r}: it must be one of {', '.join(DTYPES)}.")
    if not 0 <= holdout < 1:
        raise UsageError(f"holdout {holdout}: it must be at least 0 and less than 1; 0.01 sets a hundredth aside.")


def _check_dtype(datasets: Sequence[ChunkRange], dtype: str) -> None:
    largest = max(dataset.store.vocab_size for dataset in datasets)
    if dtype == "uint16" and largest > 1 << 16:
        raise UsageError(
            f"dtype uint16 holds ids below 65,536, but the vocabulary has {largest:,}. Use int32 or int64."
        )
