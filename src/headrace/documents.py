"""DocumentBatch: the one noun that flows from sources to tokenizers."""

from __future__ import annotations

from typing import NamedTuple


class Reject(NamedTuple):
    """A record that was refused, and where it stands."""

    file: str
    where: str  # "line 12", "row 7", "byte 4096": what a person looks up in that file
    reason: str
    counts: bool = True  # False: noted, but nothing was lost (an empty file), so the reject rate leaves it out


class DocumentBatch(NamedTuple):
    """Documents in input order.

    Each text is valid UTF-8 (no lone surrogates). Bytes and not str, because the fast engines take bytes 1.1-1.6x
    faster, hashing and byte counts come free, and text files and Arrow columns are bytes already.
    """

    texts: list[bytes]
    rejects: list[Reject]
    input_bytes: int  # how far the reader moved in its file (compressed bytes for a compressed file)
