"""LiveFeed: batches out of raw text, made ahead by threads; it can say where it is and go on from there."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.documents import Reject
from headrace.errors import UsageError
from headrace.loading.feed import Batch
from headrace.loading.live.blocks import Start
from headrace.loading.live.filler import Filler, Mark, stopped
from headrace.loading.live.state import identity_of, read_state, write_state
from headrace.loading.live.text import LiveText
from headrace.loading.live.walk import Rejects, Walk

KEPT_MARKS = 64  # of the batches given out last: more than any feeder takes ahead


class LiveFeed:
    """`take` gives this rank's share of the batches without end; the first one chooses the engine and starts threads.

    Every rank tokenizes all of the text: only so do all see the same chunks without speaking to each other.
    """

    def __init__(
        self,
        live: LiveText,
        *,
        seq_len: int,
        batch_size: int,
        share: slice | None = None,
        buffers: Sequence[NDArray[Any]] | None = None,
        dtype: Any = "int64",
        prefetch: int = 4,
        seed: int = 0,
        shuffle: bool = True,
        state: dict[str, Any] | None = None,
        with_boundaries: bool = False,
    ) -> None:
        self._live, self._seq_len, self._batch_size = live, seq_len, batch_size
        self._part = range(batch_size)[share or slice(None)]
        self._seed, self._shuffle, self._with_boundaries = seed, shuffle, with_boundaries
        self._dtype, self._prefetch = _checked_dtype(live, np.dtype(dtype)), prefetch
        self._identity = identity_of(live, seed=seed, shuffle=shuffle, seq_len=seq_len, batch_size=batch_size)
        self._step, self._start = (0, Start()) if state is None else read_state(self._identity, state)
        self._first = self._step
        self._rejects = Rejects(live.report)
        self._filler: Filler | None = None
        self._marks: dict[int, Mark] = {}
        self._buffers = buffers
        self._lent: Batch | None = None
        self._error: BaseException | None = None

    @property
    def rejects(self) -> dict[str, int]:
        """Records left out so far, by reason; those of the first epoch that this feed reads."""
        return dict(self._rejects.counts)

    @property
    def first_rejects(self) -> list[Reject]:
        """The first 100 of them, with file and place."""
        return list(self._rejects.first)

    def next(self) -> Batch:
        """The next batch; the one before is given back."""
        if self._lent is not None:
            self.give_back(self._lent)
        self._lent = self.take()
        return self._lent

    def take(self) -> Batch:
        """The next batch; its buffer is the caller's until it is given back."""
        if self._error is not None:
            raise self._error
        if self._filler is None:
            self._filler = self._started()
        found = self._filler.full.get()
        if isinstance(found, BaseException):
            self._error = found
            raise found
        batch, mark = found
        self._step = mark.step
        self._marks[mark.step] = mark
        self._marks.pop(mark.step - KEPT_MARKS, None)
        return batch

    def give_back(self, batch: Batch) -> None:
        if self._filler is not None:
            self._filler.free.put(batch.tokens)

    def stop(self) -> None:
        """End the threads; batches that were made ahead are lost, the state is kept."""
        self._error = self._error or stopped()
        if self._filler is not None:
            self._filler.stop()

    def state(self) -> dict[str, Any]:
        """Where the batch given out last ends, and what the text and the settings are known by."""
        found = self.state_after(self._step)
        assert found is not None, "the last batch has a mark"
        return found

    def state_after(self, step: int) -> dict[str, Any] | None:
        """The state after so many batches; None if that was too long ago."""
        if step in self._marks:
            mark = self._marks[step]
            return write_state(self._identity, step, mark.block.start(mark.given, shuffled=self._shuffle))
        return write_state(self._identity, step, self._start) if step == self._first else None

    def _started(self) -> Filler:
        live = self._live
        walk = Walk(
            live.units,
            live.source.options,
            self._rejects,
            name=live.name,
            group=live.group,
            seed=self._seed,
            shuffle=self._shuffle,
        )
        filler = Filler(
            live,
            walk.groups(self._start.place),
            self._start,
            seq_len=self._seq_len,
            batch_size=self._batch_size,
            part=self._part,
            seed=self._seed if self._shuffle else None,
            with_boundaries=self._with_boundaries,
        )
        shape = len(self._part), self._seq_len + 1
        own = [np.zeros(shape, self._dtype) for _ in range(self._prefetch + 1)] if self._buffers is None else []
        filler.start([*own, *(self._buffers or ())], self._step)
        weakref.finalize(self, filler.stop).atexit = False  # ordered.py ends what still runs at exit
        return filler


def _checked_dtype(live: LiveText, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype == np.uint16 and live.vocab_size > 1 << 16:
        raise UsageError(
            f"dtype uint16 holds ids below 65,536, but {live.tokenizer.name} has {live.vocab_size:,}. "
            "Use int32 or int64."
        )
    return dtype
