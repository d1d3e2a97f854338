"""InputStream: the bytes of a file, or of a range of it, decompressed, block by block."""

from __future__ import annotations

import bz2
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.documents import Reject
from headrace.sources.damage import Damaged
from headrace.sources.opening import open_input

BLOCK_BYTES = 256 << 10  # stays in the L2 cache: as fast as or faster than 1-4 MiB blocks for the JSONL reader
OUTPUT_BYTES = 1 << 20  # what one step of gz, bz2 or xz may expand to
SMALLEST_FEED = 512
BOM = b"\xef\xbb\xbf"


class InputStream:
    """Reads [start, stop) of a plain file, or the whole of a compressed one."""

    def __init__(self, path: str, compression: str | None = None, start: int = 0, stop: int | None = None) -> None:
        self.path, self.compression, self.start, self.stop = path, compression, start, stop
        self.position = start  # in the file as it lies on disk
        self.produced = 0  # bytes given out

    def blocks(self) -> Iterator[bytes]:
        with open_input(self.path) as file:
            file.seek(self.start)
            source = self._read(file.read) if self.compression is None else self._decompressed(file.read)
            for block in source:
                self.produced += len(block)
                yield block

    def _read(self, read: Callable[[int], bytes]) -> Iterator[bytes]:
        stop = self.stop if self.stop is not None else 1 << 63
        while block := read(min(BLOCK_BYTES, stop - self.position)):
            self.position += len(block)
            yield block

    def _decompressed(self, read: Callable[[int], bytes]) -> Iterator[bytes]:
        assert self.compression is not None
        new_decoder, step = CODECS[self.compression]
        decoder: Any = None
        feed = 4096
        while data := read(feed):
            self.position += len(data)
            while data:
                decoder = decoder or new_decoder()
                produced = 0
                try:
                    for output in step(decoder, data):
                        produced += len(output)
                        yield output
                except (zlib.error, OSError, lzma.LZMAError, EOFError, _zstd_error()) as error:
                    raise self._damage(f"the {self.compression} stream is corrupt ({error})") from None
                data = b""
                if decoder.eof:  # another member or frame may follow; gzip and xz may be padded with zeros
                    data, decoder = decoder.unused_data, None
                    data = data.lstrip(b"\0") if self.compression in ("gz", "xz") else data
                feed = _next_feed(feed, produced)
        if decoder is not None:
            raise self._damage(f"the {self.compression} stream ends in the middle: the file was cut short")
        if self.position == 0:
            raise self._damage(f"the file is empty, which no {self.compression} file is")

    def _damage(self, problem: str) -> Damaged:
        return Damaged(f"byte {self.position}", problem)

    def empty(self, name: str) -> list[Reject]:
        """The reject for a file in which there was nothing at all; call it when the blocks are used up."""
        whole = self.start == 0 and self.stop is None
        return [Reject(name, "byte 0", "empty file", counts=False)] if whole and self.produced == 0 else []


def _next_feed(feed: int, produced: int) -> int:
    """zstandard has no output limit and 64 KiB of zeros can stand for 2 GiB, so the feed follows the ratio seen."""
    if produced > 4 << 20:
        return max(SMALLEST_FEED, feed // 4)
    return min(64 << 10, feed * 2) if produced < 1 << 20 else feed


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


def _zstd_decoder() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()  # 1 << 31: files made with --long=31


def _step_zstd(decoder: Any, data: bytes) -> Iterator[bytes]:
    if output := decoder.decompress(data):
        yield output


def _step_zlib(decoder: Any, data: bytes) -> Iterator[bytes]:
    while True:
        output = decoder.decompress(data, OUTPUT_BYTES)
        if output:
            yield output
        data = decoder.unconsumed_tail
        if decoder.eof or (not data and len(output) < OUTPUT_BYTES):
            return


def _step_bounded(decoder: Any, data: bytes) -> Iterator[bytes]:
    """bz2 and lzma keep what they have not used."""
    while True:
        if output := decoder.decompress(data, OUTPUT_BYTES):
            yield output
        data = b""
        if decoder.eof or decoder.needs_input:
            return


CODECS: dict[str, tuple[Callable[[], Any], Callable[[Any, bytes], Iterator[bytes]]]] = {
    "gz": (lambda: zlib.decompressobj(wbits=31), _step_zlib),
    "zst": (_zstd_decoder, _step_zstd),
    "bz2": (bz2.BZ2Decompressor, _step_bounded),
    "xz": (lzma.LZMADecompressor, _step_bounded),
}


@contextmanager
def seekable(path: str, compression: str | None) -> Iterator[str]:
    """A path that can be read at any place: the file itself, or a decompressed copy that is gone afterwards."""
    if compression is None:
        yield path
        return
    handle, copy = tempfile.mkstemp(prefix="headrace-")
    try:
        with os.fdopen(handle, "wb") as file:
            for block in InputStream(path, compression).blocks():
                file.write(block)
        yield copy
    finally:
        os.unlink(copy)
