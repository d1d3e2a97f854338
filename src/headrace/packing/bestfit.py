"""Best-fit packing: fill chunks with whole documents, so that none is cut that could have been kept whole.

Best-fit decreasing over the histogram of lengths instead of over the documents: all pieces of one length are placed
together, so the work grows with the number of distinct lengths (at most the chunk size), not with the documents.
A document longer than a chunk is cut into full chunks and a rest; the rest is packed with the others.
"""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.errors import StoreError, UsageError
from headrace.files import sync

I64 = NDArray[np.int64]


class PackPlan(NamedTuple):
    """Chunk i is made of pieces[offsets[i]:offsets[i + 1]]; a piece is (first token, length)."""

    pieces: I64  # [n, 2]
    offsets: I64  # [chunks + 1]
    chunk_size: int

    @property
    def num_chunks(self) -> int:
        return len(self.offsets) - 1

    @property
    def fill(self) -> float:
        """Share of the chunks' room that holds tokens; the rest is padding."""
        room = self.num_chunks * self.chunk_size
        return float(self.pieces[:, 1].sum()) / room if room else 1.0

    def chunk(self, index: int) -> I64:
        return self.pieces[self.offsets[index] : self.offsets[index + 1]]


def best_fit(lengths: NDArray[np.int32], chunk_size: int) -> PackPlan:
    """Plan chunks of `chunk_size` tokens for documents of these lengths, stored end to end."""
    if chunk_size < 1:
        raise UsageError(f"chunk size {chunk_size}: a chunk holds at least 1 token.")
    starts, sizes = _pieces(np.asarray(lengths, np.int64), chunk_size)
    chunk_of, chunks = _place(sizes, chunk_size)
    order = np.argsort(chunk_of, kind="stable")
    offsets = np.zeros(chunks + 1, np.int64)
    np.cumsum(np.bincount(chunk_of, minlength=chunks), out=offsets[1:])
    return PackPlan(np.stack((starts[order], sizes[order]), axis=1), offsets, chunk_size)


def _pieces(lengths: I64, chunk_size: int) -> tuple[I64, I64]:
    """Cut what is longer than a chunk; empty documents make no piece."""
    counts = -(-lengths // chunk_size)
    document = np.repeat(np.arange(len(lengths)), counts)
    nth = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = (np.cumsum(lengths) - lengths)[document] + nth * chunk_size
    return starts, np.minimum(lengths[document] - nth * chunk_size, chunk_size)


def _place(sizes: I64, chunk_size: int) -> tuple[I64, int]:
    """A chunk number for every piece, longest pieces first, each into the fullest chunk that still has room."""
    chunk_of = np.zeros(len(sizes), np.int64)
    by_size = np.argsort(-sizes, kind="stable")
    values, firsts = np.unique(-sizes[by_size], return_index=True)
    bounds = np.append(firsts, len(sizes))
    rooms = _Rooms(chunk_size)
    for value, first, last in zip(-values, bounds[:-1], bounds[1:], strict=True):
        items = by_size[first:last]
        while len(items):
            chunks, room = rooms.take(int(value), len(items))
            each = room // int(value)
            used = min(len(items), each * len(chunks))
            chunk_of[items[:used]] = np.repeat(chunks, each)[:used]
            rooms.give_back(chunks, room, int(value), used)
            items = items[used:]
    return chunk_of, rooms.opened


class _Rooms:
    """Open chunks by the room they have left."""

    def __init__(self, chunk_size: int) -> None:
        self._size = chunk_size
        self._by_room: dict[int, list[I64]] = {}
        self._sorted: list[int] = []
        self.opened = 0

    def take(self, value: int, count: int) -> tuple[I64, int]:
        """Chunks for up to `count` pieces of this size: those with the least room that fits, else new ones."""
        at = bisect.bisect_left(self._sorted, value)
        if at == len(self._sorted):
            wanted = -(-count // (self._size // value))
            self.opened += wanted
            return np.arange(self.opened - wanted, self.opened), self._size
        room = self._sorted[at]
        wanted = -(-count // (room // value))
        group = self._by_room[room]
        chunks = group.pop()
        if len(chunks) > wanted:
            group.append(chunks[wanted:])
            chunks = chunks[:wanted]
        if not group:
            del self._by_room[room], self._sorted[at]
        return chunks, room

    def give_back(self, chunks: I64, room: int, value: int, used: int) -> None:
        """Put the chunks back with what is left; the last one may have taken fewer pieces."""
        each = room // value
        full, rest = divmod(used, each)
        self._add(chunks[:full], room - each * value)
        if rest:
            self._add(chunks[full : full + 1], room - rest * value)

    def _add(self, chunks: I64, room: int) -> None:
        if not len(chunks) or not room:
            return
        if room not in self._by_room:
            self._by_room[room] = []
            bisect.insort(self._sorted, room)
        self._by_room[room].append(chunks)


def plan_files(folder: Path, chunk_size: int, split: str = "train") -> tuple[Path, Path]:
    stem = f"bestfit-{split}-{chunk_size}"
    return folder / f"{stem}.pieces.npy", folder / f"{stem}.offsets.npy"


def save_plan(folder: Path, plan: PackPlan, split: str = "train") -> None:
    for path, array in zip(plan_files(folder, plan.chunk_size, split), (plan.pieces, plan.offsets), strict=True):
        np.save(path, array)
        sync(path)


def load_plan(folder: Path, chunk_size: int, split: str = "train") -> PackPlan:
    """Open a saved plan by memory map."""
    files = plan_files(folder, chunk_size, split)
    if not all(path.is_file() for path in files):
        raise StoreError(
            f"{folder} has no best-fit plan for chunk size {chunk_size}. "
            f"Prepare with --packing best-fit --chunk-size {chunk_size}, or make one: headrace.packing.best_fit."
        )
    pieces, offsets = (np.load(path, mmap_mode="r") for path in files)
    return PackPlan(pieces, offsets, chunk_size)
