"""Rows of tokens out of the maps and into a batch's buffer.

Rows are copied as they are stored into a small scratch array and widened together: 36 us for 32 rows of 2,048, where
widening each row on its way out of the map takes 52. A copy of same-typed rows is also done without the GIL, so that a
page that has to come from disk stops only the thread that gathers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loading.boundaries import Boundaries, boundaries_of
from headrace.loading.datasets import ChunkRange
from headrace.loading.sampler import Located, Sampler

BLOCK_BATCHES = 64  # index arithmetic for so many batches at once: 40 us a call whether for 32 samples or for 800

Row = tuple[int, ...]  # where one sample's tokens are; its meaning belongs to the gatherer


class Gatherer(ABC):
    """Finds and copies the rows of batches. `share` picks this rank's samples out of a global batch."""

    def __init__(
        self, sampler: Sampler, datasets: Sequence[ChunkRange], *, seq_len: int, batch_size: int, share: slice
    ) -> None:
        self._sampler, self._datasets, self._seq_len = sampler, datasets, seq_len
        self._batch_size = batch_size
        self._numbers = np.arange(batch_size, dtype=np.int64)[share]
        self._stores = [dataset.store for dataset in datasets]
        self._first = np.array([dataset.first for dataset in datasets], np.int64)
        self._scratch = np.zeros((len(self._numbers), seq_len + 1), self._stores[0].dtype)
        self._scratch_rows = list(self._scratch)

    def batches(self, step: int) -> Iterator[list[Row]]:
        """The rows of this rank's part of every batch from this step on."""
        size = len(self._numbers)
        while True:
            rows = self.rows(step, BLOCK_BATCHES)
            for first in range(0, len(rows), size):
                yield rows[first : first + size]
            step += BLOCK_BATCHES

    def rows(self, step: int, batches: int = 1) -> list[Row]:
        """The rows of this rank's part of so many batches, one after the other."""
        firsts = np.arange(step, step + batches, dtype=np.int64) * self._batch_size
        return self._find(self._sampler.locate((firsts[:, None] + self._numbers).ravel()))

    def copy(self, rows: Sequence[Row], out: NDArray[Any]) -> None:
        """Fill `out` with these rows; only one thread at a time, because the scratch array is shared."""
        if out.dtype == self._scratch.dtype:
            self._fill(rows, list(out))
        else:
            self._fill(rows, self._scratch_rows)
            np.copyto(out, self._scratch, casting="unsafe")  # ids fit: the loader has compared the vocabulary

    @abstractmethod
    def _find(self, located: Located) -> list[Row]:
        """Where these samples' tokens are."""

    @abstractmethod
    def _fill(self, rows: Sequence[Row], targets: Sequence[NDArray[Any]]) -> None:
        """Copy each row's tokens to its target."""

    @abstractmethod
    def boundaries(self, rows: Sequence[Row]) -> Boundaries:
        """Where documents begin in these rows."""


class ChunkGatherer(Gatherer):
    """Chunk i begins at token i * seq_len and has one token more than the sequence.

    A row is (dataset, first token in the dataset, shard, first token in the shard, whether all lie in that shard).
    """

    def _find(self, located: Located) -> list[Row]:
        start = (located.chunk + self._first[located.source]) * self._seq_len
        shard, offset, whole = np.zeros_like(start), np.zeros_like(start), np.zeros(len(start), bool)
        for index in np.flatnonzero(np.bincount(located.source)).tolist():
            here = slice(None) if len(self._stores) == 1 else np.flatnonzero(located.source == index)
            bounds = self._stores[index].shard_starts
            owner = np.searchsorted(bounds, start[here], side="right") - 1
            shard[here], offset[here] = owner, start[here] - bounds[owner]
            whole[here] = start[here] + self._seq_len + 1 <= bounds[owner + 1]
        columns = (located.source, start, shard, offset, whole)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _fill(self, rows: Sequence[Row], targets: Sequence[NDArray[Any]]) -> None:
        width, stores = self._seq_len + 1, self._stores
        self._announce(rows)
        for target, (source, start, shard, offset, whole) in zip(targets, rows, strict=True):
            if whole:
                target[:] = stores[source].shard_tokens(shard)[offset : offset + width]
            else:
                target[:] = stores[source].tokens(start, start + width)

    def _announce(self, rows: Sequence[Row]) -> None:
        """Let the disk fetch all rows at once; copying them waits for one after the other."""
        for source, _, shard, offset, whole in rows:
            store = self._stores[source]
            if whole and store.access == "random":
                store.expect(shard, offset, self._seq_len + 1)

    def boundaries(self, rows: Sequence[Row]) -> Boundaries:
        width = self._seq_len + 1
        starts = [self._stores[source].document_starts(start, start + width) for source, start, *_ in rows]
        return boundaries_of(starts, self._seq_len)
