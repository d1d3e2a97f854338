"""Which optimizers step in turn: the two of a GAN, each after a backward pass of its own, make one iteration."""

from __future__ import annotations

from itertools import pairwise

LONGEST = 12  # optimizer steps in an iteration


class Rhythm:
    """Once the same turn of several optimizers has come twice in a row, an iteration is one such turn."""

    def __init__(self) -> None:
        self.turn: list[int] = []  # who steps in an iteration, in order; empty while there is no rhythm
        self.at = 0
        self._seen: list[int] = []

    def beat(self, who: int) -> bool:
        """Somebody stepped. Whether that ends an iteration."""
        if self.turn:
            if who == self.turn[self.at]:
                self.at = (self.at + 1) % len(self.turn)
                return self.at == 0
            self.turn, self._seen = [], []  # the script goes on to something else
        self._seen = [*self._seen[1 - 2 * LONGEST :], who]
        return True

    def found(self) -> int:
        """How many steps an iteration has, if that was just noticed; else 0."""
        if self.turn or self._seen.count(self._seen[-1]) == len(self._seen):
            return 0
        for size in range(2, len(self._seen) // 2 + 1):
            turn = self._seen[-size:]
            if self._seen[-2 * size : -size] == turn and _one_after_another(turn):
                self.turn, self.at = turn, 0
                return size
        return 0


def _one_after_another(turn: list[int]) -> bool:
    """Several optimizers, each with all of its steps in a row."""
    changes = sum(one != other for one, other in pairwise(turn))
    return changes == len(set(turn)) - 1 > 0
