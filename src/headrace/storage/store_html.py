"""A dataset as a notebook shows it: how much there is, how long its documents are, how its text begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import HeadraceError
from headrace.files import human_bytes
from headrace.pages.bars import columns
from headrace.pages.notebook import keys, view
from headrace.pages.text import amount, text

if TYPE_CHECKING:
    from headrace.storage.reader import TokenStore

BEGINNING = 96  # tokens
SHOWN = 600  # characters


def store_html(store: TokenStore) -> str:
    metadata = store.metadata
    rows = [
        ("tokens", amount(store.total_tokens)),
        ("documents", f"{store.num_documents:,}"),
        ("chunks", f"{store.num_chunks:,} of {store.chunk_size:,}"),
        ("shards", f"{len(store.shards):,}"),
        ("size", human_bytes(sum(shard.bytes for shard in store.shards))),
        ("vocabulary", f"{metadata.vocab_size:,}"),
    ]
    note = f"split {store.split}, tokenizer {metadata.tokenizer.name}, {metadata.dtype}"
    return view(str(Path(store.path)), keys(rows) + _lengths(store) + _beginning(store), note)


def _lengths(store: TokenStore) -> str:
    try:
        lengths = store.document_lengths()
    except HeadraceError as error:  # a missing index spoils the drawing, not the notebook
        return f'<div class="hv-dim">{text(error)}</div>'
    if not len(lengths):
        return ""
    middle, longest = int(np.median(lengths)), int(lengths.max())
    counts, names = _histogram(lengths)
    note = f"median {middle:,} tokens, longest {longest:,}"
    drawn = columns(counts, names, title="Document lengths", note=note, high="5rem")
    ends = f'<div class="hv-ends hv-dim"><span>{int(lengths.min()):,}</span><span>{longest:,} tokens</span></div>'
    return f'<div class="hv-narrow">{drawn}{ends}</div>'


def _histogram(lengths: NDArray[Any]) -> tuple[list[int], list[str]]:
    """Half powers of two, because lengths differ by factors: counts, and what is said of each."""
    powers = np.floor(2 * np.log2(np.maximum(lengths, 1))).astype(int)
    first = int(powers.min())
    counts = np.bincount(powers - first)
    edges = [int(np.ceil(2 ** ((first + place) / 2))) for place in range(len(counts) + 1)]
    names = [
        f"{low:,} to {max(low, high - 1):,} tokens\n{count:,} documents"
        for low, high, count in zip(edges, edges[1:], counts.tolist(), strict=False)
    ]
    return counts.tolist(), names


def _beginning(store: TokenStore) -> str:
    """The first tokens as text; without the library of the tokenizer, as numbers."""
    ids = store.tokens(0, min(BEGINNING, store.total_tokens))
    try:
        shown = store.decode(ids)
    except HeadraceError:
        shown = " ".join(map(str, ids.tolist()))
    cut = shown[:SHOWN] + (" ..." if len(shown) > SHOWN or store.total_tokens > len(ids) else "")
    return f'<div class="hv-text">{text(cut)}</div>'
