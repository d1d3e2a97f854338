"""HubFile: a file on the hub, read by ranges as it is needed and never downloaded whole.

A range is one request. The first is small, because a reader may want no more than a file's beginning or its footer; as
long as reading goes on in one piece each is twice the one before, up to 8 MiB. Reckoned, not measured: with
0.15 s to ask, that is 29 MB/s for each reader on a line of 60 MB/s.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from headrace.errors import HeadraceError, SourceNotFound
from headrace.hub import explained, get_range, library, patiently, status_of
from headrace.sources import hub

FIRST_BLOCK, LARGEST_BLOCK, GROWTH = 128 << 10, 8 << 20, 2
SMALL_HOLE = 1 << 20  # bytes that nobody wants, but that come faster than another request


class Place(NamedTuple):
    location: str  # where the bytes are: the hub itself, or a signed address elsewhere
    size: int


class HubFile(io.RawIOBase):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self._at = 0
        self._block, self._begin = b"", 0
        self._ahead = FIRST_BLOCK
        self._starts: list[int] = []
        self._stops: list[int] = []

    @property
    def size(self) -> int:
        return find_place(self.url).size

    def expect(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Say what will be read, so that a range asked for ends where one of these ends."""
        merged = merge(ranges)
        self._starts, self._stops = [start for start, _ in merged], [stop for _, stop in merged]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        self._at = max(0, (self.size if base is None else base) + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """At most the rest of one block, as a raw file may."""
        view = memoryview(buffer).cast("B")
        if not len(view):
            return 0
        if not self._begin <= self._at < self._begin + len(self._block):
            self._fetch()
        offset = self._at - self._begin
        part = self._block[offset : offset + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _fetch(self) -> None:
        self._ahead = min(LARGEST_BLOCK, self._ahead * GROWTH) if self._goes_on() else FIRST_BLOCK
        stop = min(self._at + self._ahead, self._end_of_range(), self.size)
        self._block = fetch_range(self.url, self._at, stop) if stop > self._at else b""
        self._begin = self._at

    def _goes_on(self) -> bool:
        """Whether this is where the last block ended, or the next range begins."""
        end = self._begin + len(self._block)
        following = bisect_right(self._stops, end)
        next_range = end in self._stops and self._starts[following : following + 1] == [self._at]
        return self._block != b"" and (self._at == end or next_range)

    def _end_of_range(self) -> int:
        number = bisect_right(self._starts, self._at) - 1
        inside = number >= 0 and self._at < self._stops[number]
        return self._stops[number] if inside else self.size


def merge(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order; those with only a small hole between them are one."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if merged and start - merged[-1][1] <= SMALL_HOLE:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


@lru_cache(maxsize=1024)
def find_place(url: str) -> Place:
    """Asked once for each file and process: hubs count these questions and limit them."""
    address = hub.parse(url)
    metadata_of, limit = library().get_hf_file_metadata, library().constants.HF_HUB_ETAG_TIMEOUT
    at = f"{address.repository.page}/resolve/{quote(address.revision or 'main', safe='')}/{quote(address.path)}"
    with explained(address.repository, SourceNotFound):
        found = patiently(lambda: metadata_of(at, timeout=limit))
    if found.size is None:
        raise HeadraceError(f"The hub does not say how long {url} is. {_fetch_first(address)}")
    return Place(found.location, found.size)


def fetch_range(url: str, start: int, stop: int) -> bytes:
    """Bytes [start, stop) of a file, all of them."""
    with explained(hub.parse(url).repository, SourceNotFound):
        try:
            return _fetch_range(url, start, stop)
        except library().errors.HfHubHTTPError as error:
            if status_of(error) not in (400, 401, 403, 410):
                raise
            find_place.cache_clear()  # a signed address is good for an hour or so
            return _fetch_range(url, start, stop)


def _fetch_range(url: str, start: int, stop: int) -> bytes:
    place = find_place(url)

    def once() -> bytes:
        response = get_range(place.location, start, stop)
        data: bytes = response.content
        if response.status_code == 200 and (start, stop) != (0, place.size):
            raise HeadraceError(
                f"The hub answers a part of {url} with the whole file, so it cannot be streamed. "
                f"{_fetch_first(hub.parse(url))}"
            )
        if len(data) != stop - start:
            raise ConnectionError(f"{len(data):,} of {stop - start:,} bytes came")
        return data

    return patiently(once)


def _fetch_first(address: hub.Address) -> str:
    command = f"hf download {address.repo} {address.path} --repo-type dataset --revision {address.revision}"
    return f"Fetch it first, then the copy in the cache is read: {command}"
