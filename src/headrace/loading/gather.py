"""Rows of tokens out of the maps and into a batch's buffer: one copy, which also widens them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.loading.boundaries import Boundaries, boundaries_of
from headrace.loading.datasets import ChunkRange
from headrace.loading.order import I64
from headrace.loading.sampler import Sampler

BLOCK_BATCHES = 64  # index arithmetic for so many batches at once: 40 us a call whether for 32 samples or for 800


class Row(NamedTuple):
    """Where one sample's tokens begin."""

    source: int
    start: int  # in the tokens of that dataset
    shard: int
    offset: int  # in that shard
    whole: bool  # whether they all lie in that shard


class Gatherer:
    """Finds and copies the rows of batches. `share` picks this rank's samples out of a global batch."""

    def __init__(
        self, sampler: Sampler, datasets: Sequence[ChunkRange], *, seq_len: int, batch_size: int, share: slice
    ) -> None:
        self._sampler, self._datasets, self._seq_len = sampler, datasets, seq_len
        self._batch_size, self._share = batch_size, share
        self._stores = [dataset.store for dataset in datasets]

    def batches(self, step: int) -> Iterator[list[Row]]:
        """The rows of this rank's part of every batch from this step on."""
        sample = step * self._batch_size
        numbers = np.arange(self._batch_size, dtype=np.int64)[self._share]
        steps = np.arange(BLOCK_BATCHES, dtype=np.int64) * self._batch_size
        while True:
            rows = self._rows((sample + steps[:, None] + numbers).ravel())
            for first in range(0, len(rows), len(numbers)):
                yield rows[first : first + len(numbers)]
            sample += BLOCK_BATCHES * self._batch_size

    def copy(self, rows: Sequence[Row], out: NDArray[Any]) -> None:
        width, stores = self._seq_len + 1, self._stores
        for target, (source, start, shard, offset, whole) in zip(out, rows, strict=True):
            if whole:
                target[:] = stores[source].shard_tokens(shard)[offset : offset + width]
            else:
                target[:] = stores[source].tokens(start, start + width)

    def boundaries(self, rows: Sequence[Row]) -> Boundaries:
        """Where documents begin in these rows."""
        width = self._seq_len + 1
        starts = [self._datasets[row.source].store.document_starts(row.start, row.start + width) for row in rows]
        return boundaries_of(starts, self._seq_len)

    def _rows(self, samples: I64) -> list[Row]:
        located = self._sampler.locate(samples)
        first = np.array([dataset.first for dataset in self._datasets], np.int64)
        start = (located.chunk + first[located.source]) * self._seq_len
        shard, offset, whole = np.zeros_like(start), np.zeros_like(start), np.zeros(len(start), bool)
        for index in np.flatnonzero(np.bincount(located.source)).tolist():
            here = np.flatnonzero(located.source == index)
            bounds = self._stores[index].shard_starts
            owner = np.searchsorted(bounds, start[here], side="right") - 1
            shard[here], offset[here] = owner, start[here] - bounds[owner]
            whole[here] = start[here] + self._seq_len + 1 <= bounds[owner + 1]
        columns = (located.source, start, shard, offset, whole)
        return [Row(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
