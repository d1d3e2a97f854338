"""Block: a stretch of chunks, the window within which a live epoch is shuffled.

Chunk i of an epoch begins at token i * seq_len of it and has one token more than that, as over a prepared dataset; what
is too short for a chunk at an epoch's end is left out, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.loading.live.encode import Encoded
from headrace.loading.live.walk import Place
from headrace.loading.order import I64, derived_seed, permute


class Start(NamedTuple):
    """Where a run goes on: a token of a document, which begins a block, and how much of that block was given out."""

    place: Place = Place()
    token: int = 0
    block: int = 0  # in its epoch
    given: int = 0  # samples of it given out

    @property
    def begins_epoch(self) -> bool:
        return self == Start(Place(self.place.epoch))


class Block:
    """Chunks, the documents they lie in, and the order in which they are given out."""

    def __init__(self, tokens: NDArray[Any], begins: I64, places: list[Place], number: int, seq_len: int) -> None:
        self.number, self.seq_len = number, seq_len
        self.chunks = (len(tokens) - 1) // seq_len
        windows = np.lib.stride_tricks.sliding_window_view(tokens, seq_len + 1)
        self._rows = windows[: self.chunks * seq_len : seq_len]
        self._begins, self._places = begins, places  # the first document may begin before the block
        self.order = np.arange(self.chunks, dtype=np.int64)

    def shuffle(self, seed: int) -> None:
        """Blocks of one epoch, and one block in two epochs, are shuffled differently."""
        seed = derived_seed(seed, self._places[0].epoch + 1)
        self.order = permute(self.order, self.chunks, seed=seed, epoch=self.number)

    def rows(self, first: int, stop: int) -> NDArray[Any]:
        """The samples of these turns."""
        return self._rows[self.order[first:stop]]

    def starts(self, turn: int) -> I64:
        """Where documents begin in the sample of this turn, relative to it."""
        begin = int(self.order[turn]) * self.seq_len
        low, high = np.searchsorted(self._begins, (begin, begin + self.seq_len + 1))
        return self._begins[low:high] - begin

    def start(self, given: int, *, shuffled: bool) -> Start:
        """Where to go on when so many samples have been given out; without a shuffle at that very chunk."""
        if given == self.chunks:
            return self._at(self.chunks, self.number + 1, 0)
        return self._at(0, self.number, given) if shuffled else self._at(given, self.number, 0)

    def _at(self, chunk: int, block: int, given: int) -> Start:
        token = chunk * self.seq_len
        document = _owner(self._begins, token)
        return Start(self._places[document], token - int(self._begins[document]), block, given)


class BlockBuilder:
    """Tokens in, blocks out: full ones, and a shorter one where an epoch ends."""

    def __init__(self, start: Start, *, seq_len: int, chunks: int, name: str) -> None:
        self._seq_len, self._length, self._name = seq_len, seq_len * chunks, name
        self._number, self._short = start.block, start.begins_epoch
        self._dropped = start.token  # of the first document: given out before
        self._pieces: list[NDArray[Any]] = []
        self._begins: list[I64] = []
        self._places: list[Place] = []
        self._total = 0

    def add(self, encoded: Encoded) -> Iterator[Block]:
        if not encoded.places:
            yield from self._end_epoch()
            return
        self._pieces.append(encoded.tokens[self._dropped :])
        self._begins.append(encoded.begins + (self._total - self._dropped))
        self._places += encoded.places
        self._total += len(encoded.tokens) - self._dropped
        self._dropped = 0
        if self._total > self._length:
            yield from self._full_blocks()

    def _full_blocks(self) -> Iterator[Block]:
        tokens, begins, places = self._joined()
        count = (self._total - 1) // self._length
        for first in range(0, count * self._length, self._length):
            yield self._block(tokens, begins, places, first, first + self._length + 1)
        rest = count * self._length
        kept = _owner(begins, rest)
        self._pieces, self._total = [tokens[rest:].copy()], len(tokens) - rest  # a copy lets go of the blocks' memory
        self._begins, self._places = [begins[kept:] - rest], places[kept:]

    def _end_epoch(self) -> Iterator[Block]:
        """The chunks that are left; an epoch without any would never give a batch."""
        count = max(0, self._total - 1) // self._seq_len
        if count:
            yield self._block(*self._joined(), 0, count * self._seq_len + 1)
        elif self._short:
            raise UsageError(
                f"{self._name} holds {self._total:,} tokens: too few for a sequence of {self._seq_len:,} and its next "
                "token. Use a smaller seq_len, or more text."
            )
        self._pieces, self._begins, self._places, self._total = [], [], [], 0
        self._number, self._short, self._dropped = 0, True, 0

    def _block(self, tokens: NDArray[Any], begins: I64, places: list[Place], first: int, stop: int) -> Block:
        low, high = _owner(begins, first), int(np.searchsorted(begins, stop))
        block = Block(tokens[first:stop], begins[low:high] - first, places[low:high], self._number, self._seq_len)
        self._number, self._short = self._number + 1, False
        return block

    def _joined(self) -> tuple[NDArray[Any], I64, list[Place]]:
        return np.concatenate(self._pieces), np.concatenate(self._begins), self._places


def _owner(begins: I64, token: int) -> int:
    """The document that this token is of."""
    return int(np.searchsorted(begins, token, side="right")) - 1
