"""How long the documents of a dataset are: a histogram on a log scale, and percentiles. Exact, from the indexes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.storage import Shard, TokenStore
from headrace.storage.index import read_lengths

PERCENTILES = (1, 10, 50, 90, 99)
LONG = 1 << 16  # shorter documents are counted by length, longer ones are few enough to be kept
BINS_PER_DOUBLING = 2
EMPTY: dict[str, Any] = {"edges": [], "counts": [], "percentiles": {}, "documents": 0}


def length_statistics(store: TokenStore) -> dict[str, Any]:
    """Bin i holds the lengths from edges[i] up to, not including, edges[i + 1]. 23 ms for 1.2 million documents."""
    table, long = count_lengths(store, store.shards)
    documents = int(table.sum()) + len(long)
    if not documents:
        return EMPTY
    longest = int(long[-1]) if len(long) else int(np.flatnonzero(table)[-1])
    shortest = int(np.flatnonzero(table)[0]) if table.any() else int(long[0])
    edges = log_edges(shortest, longest)
    return {
        "edges": edges.tolist(),
        "counts": _histogram(table, long, edges).tolist(),
        "percentiles": {f"p{p}": _percentile(table, long, documents, p) for p in PERCENTILES},
        "documents": documents,
        "mean": store.total_tokens / documents,
        "shortest": shortest,
        "longest": longest,
    }


def count_lengths(store: TokenStore, shards: Sequence[Shard]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """How many documents there are of each length below LONG, and the longer lengths in order."""
    table, long = np.zeros(LONG, np.int64), []
    for shard in shards:
        lengths = read_lengths(store.path / f"{shard.name}.idx", shard.documents, store.dtype)
        over = lengths >= LONG
        if over.any():
            long.append(lengths[over])
            lengths = lengths[~over]
        counts = np.bincount(lengths)
        table[: len(counts)] += counts
    return table, np.sort(np.concatenate(long)) if long else np.zeros(0, np.int32)


def log_edges(shortest: int, longest: int) -> NDArray[np.int64]:
    """Whole numbers, two to a doubling where there is room, from the shortest length to behind the longest."""
    low = math.floor(math.log2(max(shortest, 1)) * BINS_PER_DOUBLING)
    high = math.floor(math.log2(max(longest, 1)) * BINS_PER_DOUBLING) + 1
    powers = {math.ceil(2 ** (k / BINS_PER_DOUBLING)) for k in range(low, high + 1)}
    inner = sorted(edge for edge in powers if shortest < edge <= longest)
    return np.array([shortest, *inner, longest + 1], np.int64)


def _histogram(table: NDArray[np.int64], long: NDArray[np.int32], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    below = np.concatenate(([0], np.cumsum(table)))  # documents shorter than each length
    short = below[np.minimum(edges, LONG)]
    found: NDArray[np.int64] = np.diff(short + np.searchsorted(long, edges))
    return found


def _percentile(table: NDArray[np.int64], long: NDArray[np.int32], documents: int, percent: int) -> int:
    """Between the two nearest in proportion, as numpy does it."""
    place = percent / 100 * (documents - 1)
    low, high = (_nth(table, long, rank) for rank in (math.floor(place), math.ceil(place)))
    return int(low + (high - low) * (place - math.floor(place)))


def _nth(table: NDArray[np.int64], long: NDArray[np.int32], rank: int) -> int:
    """The length at this place of all in order."""
    short = int(table.sum())
    return int(long[rank - short]) if rank >= short else int(np.searchsorted(np.cumsum(table), rank, side="right"))
