"""All shards of a dataset as one range of addresses, each mapped into its place when it is first touched.

So a token's address is arithmetic over all shards together: one numpy call gathers rows out of any number of them,
where a call per row costs as much as the copy. And a map made this way holds no file descriptor, so 10,000 shards need
none.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import StoreError

MAP_FIXED = 0x10  # on Linux, macOS and the BSDs; the mmap module does not have it
POPULATE_READ = 22  # Linux 5.14
PIECE = 32 << 20  # bytes populated at a time, so that a store that is dropped is let go soon
LATER = 0.1  # seconds: mapping a shard waits while another is populated, and the first batches should not
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0)


class ShardMaps:
    """`tokens` spans all shards, from `starts[i]` on the i-th; what is not mapped yet reads as zeros."""

    def __init__(
        self, sizes: Sequence[int], dtype: np.dtype[Any], open_shard: Callable[[int], int], *, access: str
    ) -> None:
        self._open, self._access, self._itemsize = open_shard, access, dtype.itemsize
        lengths = np.asarray(sizes, np.int64) * dtype.itemsize
        room = -(-np.maximum(lengths, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        places = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(room, out=places[1:])
        self.starts: NDArray[np.int64] = places[:-1] // dtype.itemsize
        self.mapped = np.zeros(len(lengths), bool)
        self._missing = len(lengths)
        self._places, self._lengths = places.tolist(), lengths.tolist()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        self._range = mmap.mmap(-1, self._places[-1], flags=flags, prot=mmap.PROT_READ)
        self.tokens: NDArray[Any] = np.frombuffer(self._range, dtype)
        self._address = self.tokens.ctypes.data
        self._lock = threading.Lock()
        self._populating = False

    def shard(self, index: int) -> NDArray[Any]:
        if not self.mapped[index]:
            self._map(index)
        start = self._places[index] // self._itemsize
        return self.tokens[start : start + self._lengths[index] // self._itemsize]

    def need(self, shards: NDArray[np.int64]) -> None:
        """Map those of these shards that are not mapped yet."""
        if self._missing and not self.mapped[shards].all():
            for index in sorted(set(shards.tolist())):  # np.unique would import numpy.ma: 40 ms before a first batch
                if not self.mapped[index]:
                    self._map(index)

    def expect(self, starts: NDArray[np.int64], count: int) -> None:
        """Have rows of so many tokens at these places read from disk in the background: they are about to be copied."""
        if not hasattr(mmap, "MADV_WILLNEED"):
            return
        for start in (starts * self._itemsize).tolist():
            first = start // mmap.PAGESIZE * mmap.PAGESIZE
            self._range.madvise(mmap.MADV_WILLNEED, first, start + count * self._itemsize - first)

    def populate(self) -> None:
        """Read everything into memory, and into this process's page table, by a thread that ends with these maps.

        A row whose pages were never touched costs 32 faults a batch: 91 us where a batch takes 54 without.
        """
        if not self._populating:
            self._populating = True
            threading.Thread(target=_populate, args=(weakref.ref(self),), name="headrace-populate", daemon=True).start()

    def populate_piece(self, index: int, at: int) -> int:
        """One piece of a shard; gives where the next begins, or 0 at its end."""
        if not self.mapped[index]:
            self._map(index)
        length = min(PIECE, self._lengths[index] - at)
        if length <= 0 or _call("madvise", self._address + self._places[index] + at, length, POPULATE_READ):
            return 0  # the end, or a system that does not know how
        return at + PIECE

    def _map(self, index: int) -> None:
        with self._lock:
            if not self.mapped[index]:
                self._map_shard(index)

    def _map_shard(self, index: int) -> None:
        place, length = self._places[index], self._lengths[index]
        if length:
            descriptor = self._open(index)
            try:
                if self._access == "whole" and hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
                _map_at(self._address + place, length, descriptor)
            finally:
                os.close(descriptor)
            if self._access == "random" and hasattr(mmap, "MADV_RANDOM"):
                self._range.madvise(mmap.MADV_RANDOM, place, length)
        self.mapped[index] = True
        self._missing -= 1


def _populate(maps: weakref.ref[ShardMaps]) -> None:
    time.sleep(LATER)
    index, at = 0, 0
    while (found := maps()) is not None and index < len(found.mapped):
        try:
            at = found.populate_piece(index, at)
        except StoreError:
            at = 0  # whoever reads this shard is told
        index += not at
        del found


def _map_at(address: int, length: int, descriptor: int) -> None:
    """Put a file's pages in the place of empty ones."""
    flags = mmap.MAP_SHARED | MAP_FIXED
    found = _call("mmap", address, length, mmap.PROT_READ, flags, descriptor, ctypes.c_int64(0))
    if found != address:
        error = ctypes.get_errno()
        hint = " Raise the limit: sysctl vm.max_map_count=1000000" if error == errno.ENOMEM else ""
        raise StoreError(f"A shard of {length:,} bytes cannot be mapped: {os.strerror(error)}.{hint}")


def _call(name: str, address: int, length: int, *rest: Any) -> int:
    """A function of the C library, without the GIL: the mmap module cannot choose an address, and waits with it."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_ssize_t
    found: int = function(ctypes.c_void_p(address), ctypes.c_size_t(length), *rest)
    return found
