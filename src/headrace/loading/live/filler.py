"""Filler: the threads of a live feed, and the buffers that go round between them and the caller."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from numpy.typing import NDArray

from headrace.errors import HeadraceError
from headrace.loading.boundaries import boundaries_of
from headrace.loading.feed import Batch
from headrace.loading.live.blocks import Block, BlockBuilder, Start
from headrace.loading.live.encode import Encoded
from headrace.loading.live.ordered import Ordered, Stopped
from headrace.loading.live.text import LiveText
from headrace.loading.live.walk import Group
from headrace.loading.order import I64

BLOCK_TOKENS = 1 << 16  # without a shuffle: only so that not every chunk is cut on its own
MOST_AHEAD, MOST_GROUPS = 8 << 20, 256  # bytes of text, and groups, that are tokenized ahead
BYTES_PER_TOKEN = 4  # about: the text of the next window is tokenized while this one is given out


class Mark(NamedTuple):
    """How far a batch has come."""

    step: int
    block: Block
    given: int  # samples of that block


class Filler:
    """The threads and queues. They know nothing of the feed, so that it can be dropped while they run."""

    def __init__(
        self,
        live: LiveText,
        groups: Iterator[Group],
        start: Start,
        *,
        seq_len: int,
        batch_size: int,
        part: range,
        seed: int | None,
        with_boundaries: bool,
    ) -> None:
        self.free: queue.SimpleQueue[NDArray[Any] | None] = queue.SimpleQueue()
        self.full: queue.SimpleQueue[tuple[Batch, Mark] | BaseException] = queue.SimpleQueue()
        self._given, self._seed, self._with_boundaries = start.given, seed, with_boundaries
        self._seq_len, self._batch_size, self._part = seq_len, batch_size, part
        chunks = max(1, (BLOCK_TOKENS if seed is None else live.window) // seq_len)
        self._builder = BlockBuilder(start, seq_len=seq_len, chunks=chunks, name=live.name)
        self._work: Ordered[Group, Encoded] = Ordered(
            groups,
            live.engines.lend,
            threads=live.threads,
            most_size=max(MOST_AHEAD, chunks * seq_len * BYTES_PER_TOKEN),
            most_items=MOST_GROUPS,
        )

    def start(self, buffers: list[NDArray[Any]], step: int) -> None:
        for buffer in buffers:  # one more than are filled ahead: the one that the caller holds
            self.free.put(buffer)
        threading.Thread(target=self._run, args=(step,), name="headrace-live", daemon=True).start()

    def stop(self) -> None:
        self.free.put(None)
        self._work.stop()

    def _run(self, step: int) -> None:
        try:
            for batch in self._batches(step):
                self.full.put(batch)
        except Stopped:
            pass
        except BaseException as error:  # the caller's next() raises it
            self.full.put(error)
        finally:
            self._work.stop()
            self.full.put(stopped())  # for a caller who waits when another thread stops the feed

    def _batches(self, step: int) -> Iterator[tuple[Batch, Mark]]:
        blocks = self._blocks()
        block, given = next(blocks), self._given
        while (buffer := self.free.get()) is not None:
            starts: list[I64] = []
            filled = 0
            while filled < self._batch_size:
                if given == block.chunks:
                    block, given = next(blocks), 0
                count = min(self._batch_size - filled, block.chunks - given)
                starts += self._copy(block, given - filled, range(filled, filled + count), buffer)
                filled, given = filled + count, given + count
            found = boundaries_of(starts, self._seq_len) if self._with_boundaries else None
            yield Batch(buffer, step, found), Mark(step + 1, block, given)
            step += 1

    def _copy(self, block: Block, shift: int, rows: range, buffer: NDArray[Any]) -> list[I64]:
        """Those of these rows of the global batch that are of this rank; a row's turn in the block is it + shift."""
        low, high = max(rows.start, self._part.start), min(rows.stop, self._part.stop)
        if low >= high:
            return []
        base = self._part.start
        buffer[low - base : high - base] = block.rows(low + shift, high + shift)
        return [block.starts(row + shift) for row in range(low, high)] if self._with_boundaries else []

    def _blocks(self) -> Iterator[Block]:
        while True:
            for block in self._builder.add(self._work.take()):
                if self._seed is not None:
                    block.shuffle(self._seed)
                yield block


def stopped() -> HeadraceError:
    return HeadraceError("This feed was stopped. Open another with its state to go on.")
