"""Spans -> batches of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace.documents import DocumentBatch, Reject
from headrace.errors import HeadraceError
from headrace.sources import arrow, json_values, jsonl, parquet, text, wikitext
from headrace.sources.batching import Piece, batches, exactly
from headrace.sources.damage import Damaged, refusal
from headrace.sources.opening import nearest
from headrace.sources.span import ReadOptions, Span

READERS: dict[str, Callable[[str, Span, ReadOptions], Iterator[Piece]]] = {
    "jsonl": jsonl.read,
    "json": json_values.read,
    "parquet": parquet.read,
    "arrow": arrow.read,
    "text": text.read,
}


def read_span(
    span: Span, options: ReadOptions, *, batch_bytes: int = 4 << 20, batch_documents: int | None = None
) -> Iterator[DocumentBatch]:
    """The documents of one span."""
    return read_spans([span], options, batch_bytes=batch_bytes, batch_documents=batch_documents)


def read_spans(
    spans: Sequence[Span], options: ReadOptions, *, batch_bytes: int = 4 << 20, batch_documents: int | None = None
) -> Iterator[DocumentBatch]:
    """The documents of several spans in order.

    A batch may hold the end of one span and the beginning of the next, so many small files make few batches.
    """
    pieces: Iterator[Piece] = (piece for span in spans for piece in exactly(_read(span, options), span.size))
    if options.join == "wikitext":
        pieces = wikitext.join_articles(pieces)
    return batches(pieces, batch_bytes, batch_documents)


def _read(span: Span, options: ReadOptions) -> Iterator[Piece]:
    documents = 0
    try:
        for piece in READERS[span.format](nearest(span.path), span, options):
            documents += len(piece.texts)
            yield piece
    except Damaged as damage:
        if not options.keep_damaged:
            raise refusal(span.path, damage, documents) from None
        yield Piece([], [Reject(span.path, damage.where, damage.problem)], 0)
    except OSError as error:
        raise HeadraceError(
            f"{span.path} cannot be read: {error.strerror or error}. Check that it is still there and may be read, "
            "then run the same command again."
        ) from error
