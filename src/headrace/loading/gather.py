"""Rows of tokens out of the maps and into a batch's buffer.

All rows of a batch are gathered by one numpy call, as they are stored, and widened together by another: 38 us for 32
rows of 2,048, where a call per row takes 56. No call holds the GIL, so a page that has to come from disk stops only the
thread that gathers.
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
from headrace.storage import TokenStore

BLOCK_BATCHES = 64  # index arithmetic for so many batches at once: 40 us a call whether for 32 samples or for 800

LONG_ROW = 8192  # tokens: such rows are widened one by one on their way out of the map; 68 against 92 us for 8 x 32,768

Rows = NDArray[np.int64]  # where samples are: a column for each, a line for each fact; these belong to the gatherer


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

    def batches(self, step: int) -> Iterator[Rows]:
        """The rows of this rank's part of every batch from this step on."""
        size = len(self._numbers)
        while True:
            rows = self.rows(step, BLOCK_BATCHES)
            for first in range(0, BLOCK_BATCHES * size, size):
                yield rows[:, first : first + size]
            step += BLOCK_BATCHES

    def rows(self, step: int, batches: int = 1) -> Rows:
        """The rows of this rank's part of so many batches, one after the other."""
        firsts = np.arange(step, step + batches, dtype=np.int64) * self._batch_size
        return self._find(self._sampler.locate((firsts[:, None] + self._numbers).ravel()))

    @abstractmethod
    def copy(self, rows: Rows, out: NDArray[Any]) -> None:
        """Fill `out` with the tokens of these rows. Ids fit into its type: the loader has compared the vocabulary."""

    @abstractmethod
    def boundaries(self, rows: Rows) -> Boundaries:
        """Where documents begin in these rows."""

    @abstractmethod
    def _find(self, located: Located) -> Rows:
        """Where these samples' tokens are."""


class ChunkGatherer(Gatherer):
    """Chunk i begins at token i * seq_len and has one token more than the sequence.

    The facts: dataset, first token in the dataset, shard, place in the range of maps, whether it ends in that shard.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._width = self._seq_len + 1
        self._windows = [_windows(store, self._width) for store in self._stores]

    def copy(self, rows: Rows, out: NDArray[Any]) -> None:
        if len(self._stores) == 1:
            self._copy_from(0, rows, out)
        else:
            for index in np.flatnonzero(np.bincount(rows[0])).tolist():
                here = np.flatnonzero(rows[0] == index)
                mine = np.empty((len(here), self._width), out.dtype)
                self._copy_from(index, rows[:, here], mine)
                out[here] = mine

    def _copy_from(self, index: int, rows: Rows, out: NDArray[Any]) -> None:
        """Rows of one dataset; those that go on in the next shard are put right one by one."""
        store, place, whole = self._stores[index], rows[3], rows[4]
        store.maps.need(rows[2])
        if store.access == "random":
            store.maps.expect(place, self._width)
        if self._width >= LONG_ROW:
            for target, at in zip(out, place.tolist(), strict=True):
                target[:] = store.maps.tokens[at : at + self._width]
        else:
            np.copyto(out, self._windows[index][place], casting="unsafe")
        if not whole.all():
            for i in np.flatnonzero(whole == 0).tolist():
                start = int(rows[1, i])
                out[i] = store.tokens(start, start + self._width)

    def boundaries(self, rows: Rows) -> Boundaries:
        pairs = zip(rows[0].tolist(), rows[1].tolist(), strict=True)
        starts = [self._stores[source].document_starts(start, start + self._width) for source, start in pairs]
        return boundaries_of(starts, self._seq_len)

    def _find(self, located: Located) -> Rows:
        start = (located.chunk + self._first[located.source]) * self._seq_len
        shard, place, whole = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start)
        for index in np.flatnonzero(np.bincount(located.source)).tolist():
            here = slice(None) if len(self._stores) == 1 else np.flatnonzero(located.source == index)
            store = self._stores[index]
            bounds = store.shard_starts
            owner = np.searchsorted(bounds, start[here], side="right") - 1
            shard[here], place[here] = owner, start[here] - bounds[owner] + store.maps.starts[owner]
            whole[here] = start[here] + self._width <= bounds[owner + 1]
        return np.stack((located.source, start, shard, place, whole))


def _windows(store: TokenStore, width: int) -> NDArray[Any]:
    """Every run of so many tokens as a row of one array: picking rows of it by index copies just these."""
    tokens = store.maps.tokens
    shape, strides = (len(tokens) - width + 1, width), (tokens.itemsize, tokens.itemsize)
    return np.lib.stride_tricks.as_strided(tokens, shape, strides, writeable=False)
