"""Rounds of a measurement: as many as fit into the time, and what lies in their middle."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

LEAST_ROUNDS, ROUNDS = 3, 7


class Spread(msgspec.Struct, frozen=True):
    """The median of the rounds, and the smallest and the largest."""

    value: float
    low: float
    high: float
    rounds: int


def spread(found: Sequence[float]) -> Spread:
    return Spread(median(found), min(found), max(found), len(found))


def rounds(seconds: float) -> Iterator[int]:
    """Numbers of rounds: three, and more while they fit."""
    started = time.perf_counter()
    for number in range(ROUNDS):
        spent = time.perf_counter() - started
        if number >= LEAST_ROUNDS and spent + spent / number > seconds:
            return
        yield number
