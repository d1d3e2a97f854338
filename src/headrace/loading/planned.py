"""Batches by a best-fit plan: a row is filled with whole documents, and the room that is left with padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loading.boundaries import Boundaries, boundaries_of
from headrace.loading.gather import Gatherer, Row
from headrace.loading.sampler import Located


class PlannedGatherer(Gatherer):
    """A row is (dataset, chunk of its plan). Its last place, and what the plan leaves empty, is padding.

    The loss mask leaves out padding and the last token of each piece: the token that follows it stands elsewhere.
    """

    def _find(self, located: Located) -> list[Row]:
        chunk = located.chunk + self._first[located.source]
        return list(zip(located.source.tolist(), chunk.tolist(), strict=True))

    def _fill(self, rows: Sequence[Row], targets: Sequence[NDArray[Any]]) -> None:
        for target, (source, chunk) in zip(targets, rows, strict=True):
            at, store = 0, self._stores[source]
            for start, length in self._pieces(source, chunk).tolist():
                target[at : at + length] = store.tokens(start, start + length)
                at += length
            target[at:] = _padding(store.metadata.eos_token_id, store.metadata.pad_token_id)

    def boundaries(self, rows: Sequence[Row]) -> Boundaries:
        starts, filled = [], []
        for source, chunk in rows:
            ends = np.cumsum(self._pieces(source, chunk)[:, 1])
            starts.append(np.concatenate(([0], ends)))
            filled.append(int(ends[-1]))
        found = boundaries_of(starts, self._seq_len)
        found.loss_mask[np.arange(self._seq_len) >= np.array(filled)[:, None] - 1] = False
        return found

    def _pieces(self, source: int, chunk: int) -> NDArray[np.int64]:
        plan = self._datasets[source].plan
        assert plan is not None, "opened with a plan"
        return plan.chunk(chunk)


def _padding(eos: int | None, pad: int | None) -> int:
    for token in (pad, eos):
        if token is not None:
            return token
    return 0
