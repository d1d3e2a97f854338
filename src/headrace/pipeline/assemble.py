"""Ids of a batch -> what a shard holds: control tokens added, documents divided between train and val."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.tokenizers.base import Ids, Offsets


def add_control_tokens(
    ids: Ids, offsets: Offsets, dtype: np.dtype[Any], eos: int | None, bos: int | None
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Tokens end to end with EOS behind (and BOS before) each document, and each document's length."""
    extra = (eos is not None) + (bos is not None)
    lengths = (np.diff(offsets) + extra).astype(np.int32)
    if not extra:
        return ids.astype(dtype), lengths
    ends = np.cumsum(lengths, dtype=np.int64)
    tokens = np.empty(len(ids) + extra * len(lengths), dtype)
    ordinary = np.ones(len(tokens), bool)
    for control, places in ((eos, ends - 1), (bos, ends - lengths)):
        if control is not None:
            ordinary[places] = False
            tokens[places] = control
    tokens[ordinary] = ids
    return tokens, lengths


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
