"""Where documents begin inside a batch, from the stored index: never by looking for EOS, which text may contain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.loading.order import I64


class Boundaries(NamedTuple):
    """For packed attention. The first token of a row begins a piece, also in the middle of a document."""

    position_ids: NDArray[np.int32]  # [B, L], from 0 at every beginning
    doc_ids: NDArray[np.int32]  # [B, L], from 0 in every row
    cu_seqlens: NDArray[np.int32]  # beginnings of the pieces in the flattened batch, and its length
    loss_mask: NDArray[np.bool_]  # [B, L], False where the target is the beginning of another document


def boundaries_of(starts: Sequence[I64], seq_len: int) -> Boundaries:
    """From the document beginnings within each row and its one token more, relative to the row."""
    shape = (len(starts), seq_len)
    position, document, mask = np.empty(shape, np.int32), np.empty(shape, np.int32), np.ones(shape, bool)
    pieces = []
    for i, begins in enumerate(starts):
        inside = np.concatenate(([0], begins[(begins > 0) & (begins < seq_len)]))
        lengths = np.diff(np.append(inside, seq_len))
        document[i] = np.repeat(np.arange(len(inside)), lengths)
        position[i] = np.arange(seq_len) - np.repeat(inside, lengths)
        mask[i, begins[begins > 0] - 1] = False
        pieces.append(inside + i * seq_len)
    ends = np.append(np.concatenate(pieces), len(starts) * seq_len)
    return Boundaries(position, document, ends.astype(np.int32), mask)
