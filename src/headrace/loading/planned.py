"""Batches by a best-fit plan: a row is filled with whole documents, and the room that is left with padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loading.boundaries import Boundaries, boundaries_of
from headrace.loading.gather import Gatherer, Rows
from headrace.loading.sampler import Located


class PlannedGatherer(Gatherer):
    """The facts: dataset, and chunk of its plan. A row's last place, and what the plan leaves empty, is padding.

    The loss mask leaves out padding and the last token of each piece: the token that follows it stands elsewhere.
    """

    def copy(self, rows: Rows, out: NDArray[Any]) -> None:
        for target, (source, pieces) in zip(out, self._pieces(rows), strict=True):
            at, store = 0, self._stores[source]
            for start, length in pieces.tolist():
                target[at : at + length] = store.tokens(start, start + length)
                at += length
            target[at:] = _padding(store.metadata.eos_token_id, store.metadata.pad_token_id)

    def boundaries(self, rows: Rows) -> Boundaries:
        starts, filled = [], []
        for _, pieces in self._pieces(rows):
            ends = np.cumsum(pieces[:, 1])
            starts.append(np.concatenate(([0], ends)))
            filled.append(int(ends[-1]))
        found = boundaries_of(starts, self._seq_len)
        found.loss_mask[np.arange(self._seq_len) >= np.array(filled)[:, None] - 1] = False
        return found

    def _find(self, located: Located) -> Rows:
        return np.stack((located.source, located.chunk + self._first[located.source]))

    def _pieces(self, rows: Rows) -> Iterator[tuple[int, NDArray[np.int64]]]:
        for source, chunk in zip(rows[0].tolist(), rows[1].tolist(), strict=True):
            plan = self._datasets[source].plan
            assert plan is not None, "opened with a plan"
            yield source, plan.chunk(chunk)


def _padding(eos: int | None, pad: int | None) -> int:
    for token in (pad, eos):
        if token is not None:
            return token
    return 0
