"""Piece: what a reader gives as it goes; batches: pieces cut to the size the caller asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.documents import DocumentBatch, Reject


class Piece(NamedTuple):
    texts: list[bytes]
    rejects: list[Reject]
    advance: int  # input bytes since the piece before


def exactly(pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
    """The same pieces with advances that sum to `size`.

    A span of lines ends where its last line ends, not where the plan cut it, so a reader moves a little more or less.
    """
    left = size
    for piece in pieces:
        advance = min(piece.advance, left)
        left -= advance
        yield piece._replace(advance=advance)
    if left:
        yield Piece([], [], left)


def batches(pieces: Iterable[Piece], batch_bytes: int, batch_documents: int | None) -> Iterator[DocumentBatch]:
    """Cut pieces into batches; the last batch takes the input bytes that no document stands for."""
    held: DocumentBatch | None = None  # one batch behind, so that the end of the input can still be added to it
    texts: list[bytes] = []
    rejects: list[Reject] = []
    size = advance = 0
    for piece in pieces:
        rejects += piece.rejects
        advance += piece.advance
        for text in piece.texts:
            texts.append(text)
            size += len(text)
            if size >= batch_bytes or len(texts) == batch_documents:
                if held:
                    yield held
                held = DocumentBatch(texts, rejects, advance)
                texts, rejects, size, advance = [], [], 0, 0
    if texts or rejects or held is None:
        if held:
            yield held
        held = DocumentBatch(texts, rejects, advance)
        advance = 0
    yield held._replace(input_bytes=held.input_bytes + advance)
