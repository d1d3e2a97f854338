"""JSON Lines: one object per line. The hot path of most runs.

A block in which every newline stands between '}' and '{' holds whole objects on every line, because no JSON value can
contain '}' newline '{'; msgspec then decodes the block in one call (700 MB/s where line by line is 530). Any other
block, and any block with a bad record, is decoded line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from headrace.documents import Reject
from headrace.sources.batching import Piece
from headrace.sources.damage import Damaged
from headrace.sources.records import BadRecord, choose_field, parse_record, text_of
from headrace.sources.regions import count_newlines, region
from headrace.sources.span import ReadOptions, Span
from headrace.sources.streams import BOM, InputStream
from headrace.sources.stripes import open_stripe

NEWLINE, OPEN, CLOSE = b"\n{}"
LONG_LINE = 600  # bytes
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    shared = span.compression is not None and (span.start, span.stop) != (0, None)
    return _read_stripe(path, span, options) if shared else _read_file(path, span, options)


def _read_stripe(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    """A range of a compressed file that several workers share."""
    assert span.compression is not None
    reader = open_stripe(path, span.compression, span.start)
    decoder: LineDecoder | None = None
    done = span.start
    for block in complete_lines(reader.blocks(span.start, span.stop)):
        if decoder is None:  # now the reader stands where the range begins
            fields = find_field(path, span.compression, options.text_field)
            decoder = LineDecoder(path, span.path, fields, 0, lines_before=reader.lines)
            block = block.removeprefix(BOM) if span.start == 0 else block
        texts, rejects = decoder.decode(block)
        yield Piece(texts, rejects, max(0, reader.position - done))
        done = max(done, reader.position)


def _read_file(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    """A plain file, a byte range of one, or a compressed file as a whole."""
    begin, end = region(path, span, b"\n")
    stream = InputStream(path, span.compression, begin, end)
    decoder = LineDecoder(path, span.path, find_field(path, span.compression, options.text_field), begin)
    done = begin
    for number, block in enumerate(complete_lines(stream.blocks())):
        if number == 0 and begin == 0:
            block = block.removeprefix(BOM)
        texts, rejects = decoder.decode(block)
        yield Piece(texts, rejects, stream.position - done)
        done = stream.position
    yield Piece([], stream.empty(span.path), stream.position - done)


def complete_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks cut after a newline. A line longer than a block is gathered in a list, so its cost stays linear."""
    carry: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*carry, block[:cut]])
            carry, block = [], block[cut:]
        if block:
            carry.append(block)
    if carry:  # the last line has no newline; never reached when the blocks end in damage
        yield b"".join(carry)


def find_field(path: str, compression: str | None, asked: str | None) -> tuple[str, ...]:
    """The text field of a file, from its first readable object, so that all spans of a file agree."""
    try:
        for block in complete_lines(InputStream(path, compression).blocks()):
            for line in block.removeprefix(BOM).split(b"\n"):
                try:
                    record = parse_record(line)
                except BadRecord:
                    continue
                if isinstance(record, dict):
                    return choose_field(record, asked) or (asked or "text",)
    except Damaged:
        pass  # met again, and reported, when the records are read
    return (asked or "text",)


def objects_on_lines(block: bytes) -> int | None:
    """How many lines there are if every newline inside stands between '}' and '{'; None if one does not.

    Looking for one newline after the other wins for long lines (450 against 370 MB/s for all of reading), numpy for
    short ones, where finding each costs more than the bytes between.
    """
    at, last = block.find(b"\n"), len(block) - 1
    if 0 <= at < LONG_LINE:
        return _objects_on_short_lines(block)
    lines = 1
    while 0 <= at < last:
        if block[at - 1] != CLOSE or block[at + 1] != OPEN:
            return None
        lines += 1
        at = block.find(b"\n", at + 1)
    return lines


def _objects_on_short_lines(block: bytes) -> int | None:
    data = np.frombuffer(block, np.uint8)
    inner = np.flatnonzero(data[:-1] == NEWLINE)
    fits = (data[inner - 1] == CLOSE).all() and (data[inner + 1] == OPEN).all()
    return len(inner) + 1 if fits else None


class LineDecoder:
    """Decodes blocks of whole lines, in order, and numbers the lines it rejects."""

    def __init__(
        self, path: str, name: str, keys: tuple[str, ...], begin: int, lines_before: int | None = None
    ) -> None:
        self._path, self._name, self._keys, self._begin = path, name, keys, begin
        self._decoder = msgspec.json.Decoder(_row_type(keys))
        self._text = attrgetter(".".join(["value"] * len(keys)))
        self._lines = 0  # lines decoded so far
        self._lines_before = lines_before  # lines of the file before `begin`; None: counted at the first reject

    def decode(self, block: bytes) -> tuple[list[bytes], list[Reject]]:
        lines = objects_on_lines(block)
        texts = None if lines is None else self._decode_together(block, lines)
        rejects: list[Reject] = []
        if texts is None:
            texts = self._decode_lines(block, rejects)
        self._lines += lines - (not block.endswith(b"\n")) if lines is not None else block.count(b"\n")
        return texts, rejects

    def _decode_together(self, block: bytes, lines: int) -> list[bytes] | None:
        try:
            rows = self._decoder.decode_lines(block)
        except DECODE_ERRORS:
            return None
        return [text.encode() for text in map(self._text, rows)] if len(rows) == lines else None

    def _decode_lines(self, block: bytes, rejects: list[Reject]) -> list[bytes]:
        texts = []
        for number, line in enumerate(block.split(b"\n"), self._lines + 1):
            if not line or line.isspace():
                continue
            try:
                texts.append(self._text(self._decoder.decode(line)).encode())
            except DECODE_ERRORS:
                self._decode_again(line, number, texts, rejects)
        return texts

    def _decode_again(self, line: bytes, number: int, texts: list[bytes], rejects: list[Reject]) -> None:
        """json says what is wrong, or that only another field is: NaN, or a lone surrogate, which msgspec refuses."""
        try:
            texts.append(text_of(parse_record(line), self._keys))
        except BadRecord as reason:
            rejects.append(Reject(self._name, f"line {self._before() + number}", str(reason)))

    def _before(self) -> int:
        if self._lines_before is None:
            self._lines_before = count_newlines(self._path, self._begin)
        return self._lines_before


def _row_type(keys: tuple[str, ...]) -> type[Any]:
    """A struct with the one field, under whatever name it has, so that msgspec skips all others unread."""
    row: type[Any] = str
    for key in reversed(keys):
        row = msgspec.defstruct("Row", [("value", row)], rename={"value": key}, gc=False)
    return row
