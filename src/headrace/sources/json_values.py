"""A .json file: an array of objects or strings, one object, objects one after another, or JSON Lines."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from headrace.documents import Reject
from headrace.sources import jsonl
from headrace.sources.batching import Piece
from headrace.sources.damage import Damaged
from headrace.sources.records import BadRecord, choose_field, encode, parse_record, text_of
from headrace.sources.span import ReadOptions, Span
from headrace.sources.streams import BOM, InputStream

HEAD_BYTES = 1 << 20
PIECE_BYTES = 1 << 20
CUT_ZONE = 16  # an error this close to the end of what is read may be a value cut off: -Infinity, \ud83d\ude00
WHITESPACE = re.compile(r"[ \t\r\n]*")
RAW_BAD_BYTE = re.compile("[\udc80-\udcff]")  # how surrogateescape shows a byte that is not UTF-8


def read(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    if _first_line_is_a_record(path, span.compression):
        yield from jsonl.read(path, span, options)
    else:
        yield from _read_values(path, span, options)


def _first_line_is_a_record(path: str, compression: str | None) -> bool:
    """JSON Lines under a .json name: read as lines, so that one broken line costs one record."""
    head = b""
    try:
        for block in InputStream(path, compression).blocks():
            head += block
            if b"\n" in head or len(head) > HEAD_BYTES:
                break
        return isinstance(parse_record(head.removeprefix(BOM).split(b"\n")[0]), dict)
    except (Damaged, BadRecord):
        return False


def _read_values(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    stream = InputStream(path, span.compression)
    scanner = ValueScanner(stream)
    keys: tuple[str, ...] | None = None
    texts: list[bytes] = []
    rejects: list[Reject] = []
    size = done = 0
    damage: Damaged | None = None
    try:
        for number, (value, raw) in enumerate(scanner.values(), 1):
            if keys is None and isinstance(value, dict):
                keys = choose_field(value, options.text_field) or (options.text_field or "text",)
            try:
                texts.append(_text(value, raw, keys))
                size += len(texts[-1])
            except BadRecord as reason:
                rejects.append(Reject(span.path, f"record {number}", str(reason)))
            if size >= PIECE_BYTES:
                yield Piece(texts, rejects, stream.position - done)
                texts, rejects, size, done = [], [], 0, stream.position
    except Damaged as error:
        damage = error
    yield Piece(texts, rejects + ([] if damage else stream.empty(span.path)), stream.position - done)
    if damage:
        raise damage


def _text(value: object, raw: str, keys: tuple[str, ...] | None) -> bytes:
    try:
        return encode(value, "string") if isinstance(value, str) else text_of(value, keys or ("text",))
    except BadRecord:
        if RAW_BAD_BYTE.search(raw):
            raise BadRecord("invalid UTF-8") from None
        raise


class ValueScanner:
    """Gives the values of a file one by one and holds little more than one of them."""

    def __init__(self, stream: InputStream) -> None:
        self._blocks = stream.blocks()
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder()
        self._buffer = ""
        self._at = 0
        self._bytes_before = 0  # bytes of the file before the buffer
        self._ended = False

    def values(self) -> Iterator[tuple[object, str]]:
        if self._peek() != "[":
            while self._peek():
                yield self._value()
            return
        self._at += 1
        after = "]" if self._peek() == "]" else ","
        if after == "]":
            self._at += 1
        while after == ",":
            yield self._value()
            after = self._peek()
            if after not in ("]", ","):
                raise self._damage("the array is cut short" if not after else "a comma or ']' is missing in the array")
            self._at += 1
        if self._peek():
            raise self._damage("there is more after the end of the array")

    def _peek(self) -> str:
        """The next character that is not white space; '' at the end of the file."""
        while True:
            match = WHITESPACE.match(self._buffer, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._buffer) or self._ended:
                return self._buffer[self._at : self._at + 1]
            self._grow()

    def _value(self) -> tuple[object, str]:
        self._peek()
        while True:
            try:
                value, end = self._json.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._buffer) - CUT_ZONE
                if self._ended or not cut:
                    problem = "the last value is cut short" if cut else f"broken JSON ({error.msg})"
                    raise self._damage(problem, None if cut else error.pos) from None
            except (RecursionError, ValueError) as error:
                raise self._damage(f"broken JSON ({error})") from None
            else:
                if end < len(self._buffer) or self._ended:
                    raw = self._buffer[self._at : end]
                    self._at = end
                    return value, raw
            self._grow()

    def _grow(self) -> None:
        """Drop what is used and at least double what is left, so that a long value is tried only log(n) times."""
        self._bytes_before += self._length(self._at)
        parts = [self._buffer[self._at :]]
        wanted = max(1, len(parts[0]))
        while wanted > 0 and not self._ended:
            block = next(self._blocks, b"")
            self._ended = not block
            parts.append(self._decoder.decode(block, final=self._ended))
            wanted -= len(parts[-1])
        self._buffer, self._at = "".join(parts), 0

    def _length(self, stop: int) -> int:
        return len(self._buffer[:stop].encode("utf-8", "surrogateescape"))

    def _damage(self, problem: str, at: int | None = None) -> Damaged:
        return Damaged(f"byte {self._bytes_before + self._length(self._at if at is None else at)}", problem)
