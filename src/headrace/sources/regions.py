"""Where documents begin in a plain file, so that any byte range of it can be read on its own.

A span [start, stop) owns the documents that begin in it. `document_start` moves both ends forward to the next
beginning; two neighbours move their common end to the same place, so every document is read exactly once.
"""

from __future__ import annotations

from typing import BinaryIO

from headrace.sources.opening import open_input, size_of
from headrace.sources.span import Span

SCAN_BYTES = 1 << 20


def region(path: str, span: Span, mark: bytes) -> tuple[int, int | None]:
    """The bytes [begin, end) of the documents that a span owns; documents are divided by `mark`."""
    if span.stop is None and span.start == 0:
        return 0, None
    with open_input(path) as file:
        size = size_of(file)
        stop = size if span.stop is None else span.stop
        return document_start(file, span.start, size, mark), document_start(file, stop, size, mark)


def document_start(file: BinaryIO, offset: int, size: int, mark: bytes) -> int:
    """The first position at or after `offset` that follows a mark; 0 begins a document too, `size` ends the last."""
    if offset <= 0:
        return 0
    at = max(0, offset - len(mark))
    file.seek(at)
    tail = b""
    while at < size and (block := file.read(SCAN_BYTES)):
        found = (tail + block).find(mark)
        if found >= 0:
            return at - len(tail) + found + len(mark)
        at += len(block)
        tail = (tail + block)[len(tail) + len(block) - len(mark) + 1 :]
    return size


def count_newlines(path: str, stop: int) -> int:
    """Newlines in the first `stop` bytes: only paid for by a span that has a record to reject."""
    count = 0
    with open_input(path) as file:
        while stop > 0 and (block := file.read(min(SCAN_BYTES, stop))):
            count += block.count(b"\n")
            stop -= len(block)
    return count
