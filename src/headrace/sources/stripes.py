"""Stripes: ranges of one compressed file, so that several workers can share it.

A compressed stream can only be read from its beginning, so a worker decompresses what lies before its range and throws
it away: 1 GB/s, where tokenizing runs at 0.1. It keeps its place between ranges, which come in rising order, so it
decompresses a file at most once, however many ranges it reads. A block of output belongs to the range in which the
input that completed it ends; what is fed at a time depends on the file alone, so all workers see the same blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from headrace.sources.damage import Damaged
from headrace.sources.streams import InputStream

SHAREABLE = ("zst", "gz")  # bz2 and xz decompress no faster than text is tokenized
MOST_FILES = 16  # a source of more files has work for every worker without sharing any


class StripeReader:
    """Reads ranges [start, stop) of the compressed bytes of one file, in rising order."""

    def __init__(self, path: str, compression: str) -> None:
        self.key = (path, compression)
        self._stream = InputStream(path, compression)
        self._source = self._stream.blocks()
        self._ahead: deque[tuple[int, bytes]] = deque()  # read already, but not yet passed
        self._at_line_start = True
        self.position = 0  # compressed bytes passed
        self.lines = 0  # newlines passed

    def blocks(self, start: int, stop: int | None) -> Iterator[bytes]:
        """The lines that begin in the range. `lines` says how many came before the first of them."""
        self._skip_to(start)
        inside = self._at_line_start  # the range may begin in the middle of a line of the range before
        while self._next_within(stop):
            block = self._pass()
            if not inside:
                cut = block.find(b"\n") + 1
                self.lines += cut > 0
                inside, block = cut > 0, block[cut:] if cut else b""
            if block:
                yield block
                self.lines += block.count(b"\n")
        if inside and not self._at_line_start:
            yield from self._rest_of_line()

    def _skip_to(self, start: int) -> None:
        try:
            while self._next_within(start):
                self.lines += self._pass().count(b"\n")
        except Damaged:
            if self._stream.position > start:
                raise  # else the range that holds the damage reports it

    def _next_within(self, stop: int | None) -> bool:
        """Whether there is another block, and it belongs before `stop`."""
        if not self._ahead and (block := next(self._source, None)) is not None:
            self._ahead.append((self._stream.position, block))
        return bool(self._ahead) and (stop is None or self._ahead[0][0] <= stop)

    def _pass(self) -> bytes:
        self.position, block = self._ahead.popleft()
        self._at_line_start = block.endswith(b"\n")
        return block

    def _rest_of_line(self) -> Iterator[bytes]:
        """The end of a line that began in this range; its blocks stay for the next range to pass."""
        number = 0
        while True:
            if number == len(self._ahead):
                block = next(self._source, None)
                if block is None:
                    return
                self._ahead.append((self._stream.position, block))
            block = self._ahead[number][1]
            cut = block.find(b"\n") + 1
            yield block[:cut] if cut else block
            if cut:
                return
            number += 1


_kept: StripeReader | None = None  # the file this process is in the middle of


def open_stripe(path: str, compression: str, start: int) -> StripeReader:
    """A reader that stands at or before `start`: the one kept from the last range if it can serve."""
    global _kept
    if _kept is None or _kept.key != (path, compression) or _kept.position > start or start == 0:
        _kept = StripeReader(path, compression)
    return _kept
