"""A chunk of a dataset, token by token, with the documents that lie in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.dashboard.data_missing import NotFound
from headrace.dashboard.data_pieces import Pieces
from headrace.errors import StoreError, UsageError
from headrace.storage import TokenStore
from headrace.storage.index import read_lengths

LEAST, MOST = 16, 8192


def show_chunk(store: TokenStore, pieces: Pieces, index: int, size: int) -> dict[str, Any]:
    """Chunk `index` at any size. The last one is what is left over, so that every token can be seen."""
    total, chunks = store.total_tokens, count_chunks(store, size)
    if not 0 <= index < chunks:
        raise NotFound(
            f"chunk {index:,}: the {store.split} split of {store.path.name} has {chunks:,} chunks of {size:,} tokens, "
            f"numbered from 0. Ask for one up to {chunks - 1:,}."
        )
    start, stop = index * size, min((index + 1) * size, total)
    ids = store.tokens(start, stop)
    _check_ids(store, ids)
    return {
        "split": store.split,
        "index": index,
        "chunks": chunks,
        "size": size,
        "start": start,
        "total_tokens": total,
        "total_documents": store.num_documents,
        "tokens": list(_tokens(pieces, ids.tolist())),
        "documents": list(documents_within(store, start, stop)),
    }


def count_chunks(store: TokenStore, size: int) -> int:
    if not LEAST <= size <= MOST:
        raise UsageError(f"size {size:,}: a chunk is shown with {LEAST} to {MOST:,} tokens. Ask for size=512.")
    return -(-store.total_tokens // size)


def chunk_of_document(store: TokenStore, document: int, size: int) -> int:
    """The chunk in which a document begins."""
    if not 0 <= document < store.num_documents:
        raise NotFound(
            f"document {document:,}: the {store.split} split of {store.path.name} has {store.num_documents:,} "
            f"documents, numbered from 0. Ask for one up to {store.num_documents - 1:,}."
        )
    count_chunks(store, size)
    first = _first_documents(store)
    shard = int(np.searchsorted(first, document, side="right")) - 1
    start = int(store.shard_starts[shard]) + int(_offsets(store, shard)[document - int(first[shard])])
    return min(start, store.total_tokens - 1) // size


def documents_within(store: TokenStore, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Documents that have a token in [start, stop), in order; their places are counted from `start`."""
    first = _first_documents(store)
    shard = int(np.searchsorted(store.shard_starts, start, side="right")) - 1
    while shard < len(store.shards) and store.shard_starts[shard] < stop:
        base, offsets = int(store.shard_starts[shard]), _offsets(store, shard)
        low = int(np.searchsorted(offsets, max(0, start - base), side="right")) - 1
        high = int(np.searchsorted(offsets, stop - base, side="left"))
        for local in range(low, min(high, len(offsets) - 1)):
            begin, end = base + int(offsets[local]), base + int(offsets[local + 1])
            if begin < end:
                yield {
                    "number": int(first[shard]) + local,
                    "start": max(begin, start) - start,
                    "stop": min(end, stop) - start,
                    "begins": begin >= start,
                    "ends": end <= stop,
                    "length": end - begin,
                }
        shard += 1


def _tokens(pieces: Pieces, ids: list[int]) -> Iterator[dict[str, Any]]:
    for one, text in zip(ids, pieces.of(ids), strict=True):
        yield {"id": one, "text": text, "special": True} if one in pieces.special else {"id": one, "text": text}


def _check_ids(store: TokenStore, ids: NDArray[Any]) -> None:
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < store.vocab_size:
        raise StoreError(
            f"{store.path.name} holds the id {int(ids.max()):,}, but its vocabulary ends at {store.vocab_size - 1:,}. "
            f"Run: headrace verify {store.path}"
        )


def _first_documents(store: TokenStore) -> NDArray[np.int64]:
    """The number of each shard's first document."""
    counts = np.array([0, *(shard.documents for shard in store.shards)], np.int64)
    return np.cumsum(counts)[:-1]


def _offsets(store: TokenStore, shard: int) -> NDArray[np.int64]:
    """Where each document of a shard begins, and where the last one ends: 4 ms for a million."""
    info = store.shards[shard]
    lengths = read_lengths(store.path / f"{info.name}.idx", info.documents, store.dtype)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
