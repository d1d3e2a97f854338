"""WikiText: a row is a line; rows from one ' = Title = ' to the next are an article."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from headrace.sources.batching import Piece

HEADING = re.compile(rb" = (?!=)[^\n]*(?<!=) = \n?")  # ' = = Section = = ' is no title


def join_articles(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Articles, across pieces and spans; rows bring their own newlines."""
    article: list[bytes] = []
    for piece in pieces:
        articles = []
        for row in piece.texts:
            if HEADING.fullmatch(row):
                articles += _joined(article)
                article = []
            article.append(row)
        yield piece._replace(texts=articles)
    yield Piece(_joined(article), [], 0)


def _joined(rows: list[bytes]) -> list[bytes]:
    text = b"".join(rows)
    return [] if not text or text.isspace() else [text]
