"""Loader: batches for any training loop, gathered ahead by a thread, in an order that never changes.

One process, no shared memory, no locks on disk: after kill -9 there is nothing to clean. The buffers are made once and
used again, because a new one for each batch costs more in page faults than the copy itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.loading.buffers import allocate
from headrace.loading.datasets import CONCAT, PACKINGS, Selection
from headrace.loading.feed import Batch, Feed
from headrace.loading.live import LiveData, LiveFeed, LiveText
from headrace.loading.mixture import Mix, Mixture
from headrace.loading.prepared import PreparedData, check_dtype
from headrace.loading.sampler import Progress
from headrace.loading.waits import Waits, WaitStatistics
from headrace.storage import TRAIN
from headrace.telemetry import EventLog

DTYPES = ("int64", "int32", "uint16")
ACCESS = {"auto": None, "random": "random", "populate": "whole", "normal": "normal"}
STATE_VERSION = 1
SAME = ("version", "seq_len")  # must be as they were to resume


class Loader:
    """An endless iterator of batches over one dataset, a mixture, or text that is tokenized on the way.

    `batch_size` counts the sequences of a step over all ranks; each rank gets its equal part. So a run may go on with
    another number of ranks and still sees the same batches.
    """

    def __init__(
        self,
        data: Mixture | Mix | LiveText,
        *,
        seq_len: int,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        split: str = TRAIN,
        holdout: float = 0.0,
        packing: str = CONCAT,
        max_chunks: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        dtype: str = "int64",
        prefetch: int = 4,
        documents: bool = False,
        memory: str = "auto",
        pin: bool | None = None,
        events: EventLog | None = None,
    ) -> None:
        _check_sizes(seq_len=seq_len, batch_size=batch_size, world_size=world_size, prefetch=prefetch)
        _check_ranks(batch_size, rank, world_size)
        _check_choice("dtype", dtype, DTYPES)
        _check_choice("memory", memory, tuple(ACCESS))
        _check_choice("packing", packing, PACKINGS)
        if not 0 <= holdout < 1:
            raise UsageError(f"holdout {holdout}: it must be at least 0 and less than 1; 0.01 sets a hundredth aside.")
        self.seq_len, self.batch_size, self.rank, self.world_size = seq_len, batch_size, rank, world_size
        self.dtype, self.prefetch, self.documents, self.pin = np.dtype(dtype), prefetch, documents, pin
        self._data: PreparedData | LiveData
        if isinstance(data, LiveText):
            _check_live(split, holdout, packing, max_chunks)
            self._data = LiveData(data, seq_len=seq_len, batch_size=batch_size, seed=seed, shuffle=shuffle)
        else:
            self._data = PreparedData(
                data if isinstance(data, Mixture) else Mixture(data),
                Selection(seq_len, split, holdout, packing, max_chunks),
                batch_size=batch_size,
                seed=seed,
                shuffle=shuffle,
                access=ACCESS[memory],
            )
        check_dtype(self._data.vocab_size, self.dtype)
        self._step, self._held, self._lent = 0, 1, None
        self._waits = Waits(events, tokens=self.local_batch_size * seq_len)
        self._feed: Feed | LiveFeed | None = None
        self._release: weakref.finalize[..., Loader] | None = None

    _lent: Batch | None

    @property
    def local_batch_size(self) -> int:
        return self.batch_size // self.world_size

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which a run sees as many chunks as the datasets hold together."""
        return self._data.chunks // self.batch_size

    @property
    def chunks_per_epoch(self) -> int:
        return self._data.chunks

    @property
    def step(self) -> int:
        """How many batches have been given out, in all runs together."""
        return self._step

    @property
    def mixture(self) -> Mixture:
        return self._data.mixture

    @property
    def vocab_size(self) -> int:
        return self._data.vocab_size

    def has_split(self, split: str) -> bool:
        """Whether every dataset has documents of this split."""
        return self._data.has_split(split)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._lent is not None:
            self.give_back(self._lent)
        self._lent = self.take()
        return self._lent

    def take(self) -> Batch:
        """The next batch, whose memory is yours until you give it back: for copies that go on while you go on."""
        if self._feed is None:
            self._feed = self._start()
        started = time.perf_counter()
        try:
            batch = self._feed.take()
        except BaseException:
            self._stop()  # the next call starts again at this step
            raise
        self._waits.add(time.perf_counter() - started)
        self._step += 1
        return batch

    def give_back(self, batch: Batch) -> None:
        if self._feed is not None and batch is not None:
            self._feed.give_back(batch)
        if batch is self._lent:
            self._lent = None

    def hold(self, count: int) -> None:
        """Let so many batches be held at once by a caller of `take`."""
        if count != self._held:
            self._stop()
            self._held = count

    def batch_at(self, step: int) -> Batch:
        """The batch of any step, in memory of its own; the loader stays where it is."""
        tokens = np.empty((self.local_batch_size, self.seq_len + 1), self.dtype)
        found = self._data.gather(step, self._share(), tokens, with_boundaries=self.documents)
        return Batch(tokens, step, found)

    def progress(self, step: int | None = None) -> list[Progress]:
        """Samples and epochs of each dataset so far, or after so many batches."""
        return self._data.progress(self._step if step is None else step)

    def wait_statistics(self) -> WaitStatistics:
        """How long batches were waited for; the first of a run includes starting the thread."""
        return self._waits.statistics

    def change_mixture(self, mix: Mix) -> None:
        """Draw in other proportions from the next batch on; nothing is repeated or skipped."""
        if not self._step:
            raise UsageError("No batch has been given out yet: name the mixture when you open the loader.")
        self._stop()
        self._data.change(self._step, mix)

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """A few integers, and what the data are known by; after the last batch, or after so many."""
        step = self._step if step is None else step
        shape = {"seq_len": self.seq_len, "batch_size": self.batch_size}
        return {**self._data.state(step), "version": STATE_VERSION, "step": step, **shape}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken; refuses another dataset or other settings, with the difference."""
        mine = self.state_dict()
        lines = [
            f"{name}: {state.get(name)!r} then, {mine[name]!r} now" for name in SAME if state.get(name) != mine[name]
        ]
        lines += self._data.differences(state)
        if lines:
            listed = "\n  ".join(lines)
            raise UsageError(
                f"This state belongs to other data or settings:\n  {listed}\nOpen the loader as it was then."
            )
        step = self._step_of(state)
        self._stop()
        self._data.load(state)
        self._step = step

    def _step_of(self, state: dict[str, Any]) -> int:
        """Samples have numbers of their own, so a run may go on with batches of another size."""
        step, rest = divmod(int(state["step"]) * int(state["batch_size"]), self.batch_size)
        if rest:
            raise UsageError(
                f"This state is of {state['step']:,} batches of {state['batch_size']}, which is no whole number of "
                f"batches of {self.batch_size}. Take a batch_size that divides {state['batch_size']}."
            )
        return step

    def close(self) -> None:
        self._stop()

    def __getstate__(self) -> dict[str, Any]:
        """Goes to another process as it stands, without the thread, its buffers and the event log."""
        waits = Waits(None, tokens=self.local_batch_size * self.seq_len)
        return {**self.__dict__, "_feed": None, "_release": None, "_lent": None, "_waits": waits}

    def _share(self) -> slice:
        part = self.local_batch_size
        return slice(self.rank * part, (self.rank + 1) * part)

    def _start(self) -> Feed | LiveFeed:
        # One for the thread beside those that are filled and those that are held, so that a caller always finds one.
        buffers: list[NDArray[Any]] = [
            allocate((self.local_batch_size, self.seq_len + 1), self.dtype, pin=self.pin)
            for _ in range(self.prefetch + self._held + 1)
        ]
        feed = self._data.start(self._step, self._share(), buffers, with_boundaries=self.documents)
        self._release = weakref.finalize(self, feed.stop)
        return feed

    def _stop(self) -> None:
        if self._release is not None:
            self._release()  # stops the feed; one that is only left behind would keep its buffers as long as the Loader
        self._feed = self._lent = self._release = None


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise UsageError(f"{name} {value}: it must be at least 1.")


def _check_ranks(batch_size: int, rank: int, world_size: int) -> None:
    if not 0 <= rank < world_size:
        raise UsageError(f"rank {rank}: with a world size of {world_size} ranks are 0 to {world_size - 1}.")
    if batch_size % world_size:
        raise UsageError(
            f"batch_size {batch_size} counts the sequences of all ranks and cannot be shared by {world_size} of them. "
            f"Take a multiple of {world_size}."
        )


def _check_live(split: str, holdout: float, packing: str, max_chunks: int | None) -> None:
    if (split, holdout, packing, max_chunks) != (TRAIN, 0.0, CONCAT, None):
        raise UsageError(
            "Live text has no validation split, no held-out chunks, no best-fit plan and no number of chunks. Leave "
            "split, holdout, packing and max_chunks out, or prepare the text: headrace prepare SOURCE --out DIR"
        )


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} {value!r}: it must be one of {', '.join(choices)}.")
