"""Ids of a batch -> what a shard holds: control tokens added, documents divided between train and val."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.tokenizers.base import Ids


def join_documents(
    rows: Sequence[Ids], dtype: np.dtype[Any], eos: int | None, bos: int | None
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Tokens end to end with EOS behind (and BOS before) each document, and each document's length."""
    before = [] if bos is None else [np.array([bos], np.uint32)]
    after = [] if eos is None else [np.array([eos], np.uint32)]
    lengths = np.array([len(row) + len(before) + len(after) for row in rows], np.int32)
    if not rows:
        return np.zeros(0, dtype), lengths
    pieces = [piece for row in rows for piece in (*before, row, *after)]
    return np.concatenate(pieces, dtype=dtype, casting="unsafe"), lengths


def val_documents(texts: Sequence[bytes], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which documents are set aside: by their text alone, so wherever and whenever a document is met."""
    if not fraction:
        return np.zeros(len(texts), bool)
    bound = int(fraction * 2**64)
    return np.fromiter((xxhash.xxh3_64_intdigest(text, seed) < bound for text in texts), bool, len(texts))


def documents_within(lengths: NDArray[np.int32], val: NDArray[np.bool_], train_tokens: int) -> int:
    """How many documents it takes to reach this many training tokens; all if they do not reach it."""
    reached = np.cumsum(np.where(val, 0, lengths), dtype=np.int64)
    return min(int(np.searchsorted(reached, train_tokens)) + 1, len(lengths))
