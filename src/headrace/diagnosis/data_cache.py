"""Which pages of the shards are in the page cache, and dropping just these; on Linux, without privileges."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from headrace.files import human_bytes

LEFT = 0.01  # of the bytes may stay: a page that somebody reads at this moment does
TRIES, PAUSE = 20, 0.05  # a second in all: a closed loader's thread has ended by then


class PageCache:
    """The pages of these files. `unseen` says why they cannot be counted, `undroppable` why they cannot be dropped."""

    def __init__(self, files: Sequence[Path], *, in_memory: bool = False) -> None:
        self.files = files
        self.size = sum(file.stat().st_size for file in files)
        self.unseen = _why_unseen(files)
        self.undroppable = (
            _why_undroppable(in_memory) or self.unseen
        )  # what nobody can see, nobody can trust to be gone

    def resident(self) -> int:
        """Bytes in the page cache now, in whole pages but never more than the files have."""
        return sum(_resident(file) for file in self.files)

    def drop(self) -> str | None:
        """Drop the pages and look whether they went; the reason if they did not."""
        if self.undroppable:
            return self.undroppable
        for _ in range(TRIES):
            for file in self.files:
                _drop(file)
            left = self.resident()
            if left <= LEFT * self.size:
                return None
            time.sleep(PAUSE)
            gc.collect()  # a closed loader's maps are in a cycle, and pages that are mapped stay
        return (
            f"{human_bytes(left)} of {human_bytes(self.size)} stayed in the page cache when dropped: another "
            "process has the shards mapped, or is reading them."
        )


def _why_unseen(files: Sequence[Path]) -> str | None:
    if sys.platform != "linux":
        return f"the page cache can be looked into on Linux only, and this is {sys.platform}."
    # The kernel shows the pages of a file to those who own it or may write to it, and calls all of them resident for
    # everybody else (Linux 5.2).
    foreign = [file for file in files if os.geteuid() not in (0, file.stat().st_uid) and not os.access(file, os.W_OK)]
    if foreign:
        return f"only the owner of {foreign[0].name} may see which of its pages are in the page cache."
    return None


def _why_undroppable(in_memory: bool) -> str | None:
    if in_memory:
        return "the shards lie on a file system in memory, which has no disk below it and nothing to drop."
    if not hasattr(os, "posix_fadvise"):
        return "this system has no posix_fadvise, so pages cannot be dropped without privileges."
    return None


def _resident(file: Path) -> int:
    size = file.stat().st_size
    if not size:
        return 0
    with _opened(file) as descriptor:
        room = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    found = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    function = ctypes.CDLL(None, use_errno=True).mincore
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    address = np.frombuffer(room, np.uint8).ctypes.data
    if function(address, size, found.ctypes.data):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(file))
    return min(size, int(np.count_nonzero(found & 1)) * mmap.PAGESIZE)


def _drop(file: Path) -> None:
    with _opened(file) as descriptor:
        with suppress(OSError):  # a file system that cannot sync keeps what is dirty, and that is seen
            os.fsync(descriptor)  # only clean pages can be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
