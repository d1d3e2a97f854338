"""How often each token occurs: counted over spans that lie evenly over the whole dataset."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.dashboard.data_pieces import Pieces
from headrace.errors import StoreError, UsageError
from headrace.storage import TokenStore

SPAN = 1 << 16  # tokens counted at once
MOST_TOKENS = 20_000_000
MOST_SECONDS = 0.5
CURVE = 200  # points
MOST_TOP = 500
GOLDEN = (math.sqrt(5) - 1) / 2


class Frequency(NamedTuple):
    counts: NDArray[np.int64]  # by id
    counted: int  # tokens looked at


def count_tokens(store: TokenStore, *, most_tokens: int = MOST_TOKENS, most_seconds: float = MOST_SECONDS) -> Frequency:
    """All of a small dataset; of a larger one, or of a slow disk, as much as the limits let."""
    counts, counted = np.zeros(store.vocab_size, np.int64), 0
    ends = time.monotonic() + most_seconds
    for start in span_starts(store.total_tokens, most_tokens):
        ids = store.tokens(start, min(start + SPAN, store.total_tokens))
        found = np.bincount(ids, minlength=store.vocab_size)
        if len(found) > store.vocab_size:
            raise StoreError(
                f"{store.path.name} holds the id {len(found) - 1:,}, but its vocabulary ends at "
                f"{store.vocab_size - 1:,}. Run: headrace verify {store.path}"
            )
        counts += found
        counted += len(ids)
        if time.monotonic() >= ends:
            break
    return Frequency(counts, counted)


def span_starts(total: int, most_tokens: int) -> list[int]:
    """Evenly spaced, and in an order whose every beginning is spread over the whole, should time run out."""
    spans = -(-total // SPAN)
    taken = max(1, min(spans, most_tokens // SPAN))
    stride = next(step for step in range(max(1, round(taken * GOLDEN)), taken + 2) if math.gcd(step, taken) == 1)
    return [(i * stride % taken) * spans // taken * SPAN for i in range(taken if total else 0)]


def show_frequency(store: TokenStore, pieces: Pieces, found: Frequency, top: int) -> dict[str, Any]:
    if not 1 <= top <= MOST_TOP:
        raise UsageError(f"top {top:,}: from 1 to {MOST_TOP} tokens are listed. Ask for top=50.")
    order = np.argsort(-found.counts, kind="stable")
    seen = int(np.count_nonzero(found.counts))
    before = next((int(one) for one in order[:seen] if int(one) not in pieces.special), None)
    return {
        "split": store.split,
        "counted": found.counted,
        "total": store.total_tokens,
        "vocab_size": store.vocab_size,
        "never": store.vocab_size - seen,
        "top": [_row(pieces, found, int(one), before) for one in order[: min(top, seen)]],
        "curve": _curve(found.counts[order[:seen]]),
    }


def _row(pieces: Pieces, found: Frequency, one: int, before: int | None) -> dict[str, Any]:
    count = int(found.counts[one])
    text = pieces.alone(one) if before is None else pieces.inside(one, before)
    row = {"id": one, "text": text, "count": count, "share": count / found.counted}
    return {**row, "special": True} if one in pieces.special else row


def _curve(counts: NDArray[np.int64]) -> dict[str, list[int]]:
    """Count by rank, from 1: all ranks if they are few, else evenly on a log scale."""
    if len(counts) <= CURVE:
        ranks = np.arange(1, len(counts) + 1)
    else:
        ranks = np.unique(np.round(np.geomspace(1, len(counts), CURVE)).astype(np.int64))
    return {"rank": ranks.tolist(), "count": counts[ranks - 1].tolist()}
