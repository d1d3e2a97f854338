"""Text files: a file is a document, or what stands between separators is.

A file above 256 MiB with no separator would not fit a worker's memory several times over, so it is cut at the first
blank line after each 64 MiB (failing that a newline, failing that a character, within 16 MiB): each part is a document.
"""

from __future__ import annotations

import codecs
import io
import tokenize
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from headrace.documents import Reject
from headrace.sources.batching import Piece
from headrace.sources.opening import open_input, size_of
from headrace.sources.regions import region
from headrace.sources.span import ReadOptions, Span
from headrace.sources.streams import BOM, InputStream
from headrace.sources.suffixes import strip_compression

LARGE_BYTES = 256 << 20
PART_BYTES = 64 << 20
WINDOW_BYTES = 16 << 20
CHECK_BYTES = 1 << 20


def read(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    if span.stop is not None and not options.separator:
        yield from _read_parts(path, span, span.stop)
        return
    mark = (options.separator or "").encode()
    begin, end = region(path, span, mark) if mark else (0, None)
    stream = InputStream(path, span.compression, begin, end)
    documents = separated(stream.blocks(), mark, begin) if mark else parts(stream.blocks())
    done = begin
    for offset, document in documents:
        texts, rejects = checked(span.path, offset, document)
        yield Piece(texts, rejects, stream.position - done)
        done = stream.position
    yield Piece([], stream.empty(span.path), stream.position - done)


def _read_parts(path: str, span: Span, stop: int) -> Iterator[Piece]:
    """The parts of a large plain file whose 64 MiB marks lie in [start, stop)."""
    with open_input(path) as file:
        size = size_of(file)
        for mark in range(span.start, stop, PART_BYTES):
            begin, end = _cut_at(file, mark, size), _cut_at(file, min(mark + PART_BYTES, size), size)
            file.seek(begin)
            document = read_fully(file, end - begin)
            yield Piece(*checked(span.path, begin, document), len(document))


def _cut_at(file: BinaryIO, mark: int, size: int) -> int:
    if mark in (0, size):
        return mark
    file.seek(mark)
    return mark + find_cut(read_fully(file, WINDOW_BYTES))


def read_fully(file: BinaryIO, size: int) -> bytes:
    """read(2) gives at most 2 GiB, and less whenever it likes."""
    blocks = []
    while size > 0 and (block := file.read(size)):
        blocks.append(block)
        size -= len(block)
    return b"".join(blocks)


def separated(blocks: Iterable[bytes], mark: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """(byte offset, document) for each; newlines around a separator belong to it, and empty documents are dropped."""
    rest = bytearray()
    searched = 0  # no mark begins before this place in `rest`, so a long document is searched once
    for block in blocks:
        rest += block
        begin = 0
        while (found := rest.find(mark, max(begin, searched))) >= 0:
            yield from _stripped(offset + begin, bytes(rest[begin:found]))
            begin = searched = found + len(mark)
        del rest[:begin]
        offset += begin
        searched = max(0, len(rest) - len(mark) + 1)
    yield from _stripped(offset, bytes(rest))


def _stripped(offset: int, document: bytes) -> Iterator[tuple[int, bytes]]:
    if offset == 0 and document.startswith(BOM):
        offset, document = len(BOM), document[len(BOM) :]
    body = document.lstrip(b"\r\n")
    if kept := body.rstrip(b"\r\n"):
        yield offset + len(document) - len(body), kept


def parts(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """(byte offset, document): the whole file, or its parts when it proves to be large."""
    rest = bytearray()
    offset, mark, large = 0, PART_BYTES, False
    for block in chain(blocks, [b""]):
        rest += block
        large = large or len(rest) > LARGE_BYTES
        seen = offset + len(rest)
        while large and (seen >= mark + WINDOW_BYTES or (not block and seen > mark)):
            cut = mark - offset
            cut += find_cut(bytes(rest[cut : cut + WINDOW_BYTES]))
            yield offset, bytes(rest[:cut])
            del rest[:cut]
            offset, mark = offset + cut, mark + PART_BYTES
    if rest:
        yield offset, bytes(rest)


def find_cut(window: bytes) -> int:
    """Where to cut in the bytes behind a mark: after a blank line, else after a newline, else before a character.

    It looks at nothing else, so spans of a plain file and the stream of a compressed one are cut alike.
    """
    for blank in (b"\n\n", b"\n\r\n", b"\n"):
        found = window.find(blank)
        if found >= 0:
            return found + len(blank)
    inside = (number for number, byte in enumerate(window) if byte & 0xC0 != 0x80)  # 10xxxxxx: inside a character
    return next(inside, 0)


def checked(file: str, offset: int, document: bytes) -> tuple[list[bytes], list[Reject]]:
    """The document as valid UTF-8, or the reject that says where it is not."""
    if strip_compression(file)[0].endswith(".py") and offset == 0:
        try:
            document = recoded(document)
        except (SyntaxError, LookupError, UnicodeDecodeError) as error:
            return [], [Reject(file, "byte 0", f"not in the encoding its coding line names ({error})")]
    bad = first_invalid_byte(document)
    if bad is not None:
        return [], [Reject(file, f"byte {offset + bad}", "invalid UTF-8")]
    return [document.removeprefix(BOM) if offset == 0 else document], []


def recoded(source: bytes) -> bytes:
    """Python source as UTF-8, whatever its coding line (PEP 263) says."""
    head = source[:4096]
    if b"coding" not in b"\n".join(head.split(b"\n")[:2]):
        return source
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source if encoding.startswith("utf-8") else source.decode(encoding).encode()


def first_invalid_byte(data: bytes) -> int | None:
    """In steps of 1 MiB: decoding the whole at once would take up to four times its size in memory."""
    if data.isascii():
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(data), CHECK_BYTES):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(data[begin : begin + CHECK_BYTES], final=begin + CHECK_BYTES >= len(data))
        except UnicodeDecodeError as error:
            return begin - pending + error.start
    return None
