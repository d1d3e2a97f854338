"""Whose turn it is: sample numbers shared out among sources by weight, exact to one sample at every prefix.

Weights become whole numbers c_i with a sum P of at most 65,536; P samples hold exactly c_i of source i, and the next P
are shared out in the same way. Within a period the j-th sample of source i (from 0) may take the places from
floor(j P / c_i) up to, not including, ceil((j + 1) P / c_i): that says |count_i(s) - s c_i / P| < 1 for every s.
Such places exist for all samples at once: spread each evenly over the time from j P / c_i to (j + 1) P / c_i, and every
place is exactly full; a matching in fractions means there is one in whole numbers. Earliest deadline first finds it,
because every sample takes one place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError

I64 = NDArray[np.int64]

MAX_PERIOD = 65_536  # 512 KiB of tables, about 30 ms to build
TOLERANCES = 1e-13, 1e-6  # the smallest period that gives the weights as written, or else nearly so


class Quota:
    """Constant weights: source and place within the source for any sample number."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = np.array(counts, np.int64)
        self.period = int(self.counts.sum())
        self._source = _turns(self.counts)
        self._nth = _occurrence(self._source).astype(np.int32)

    def assign(self, samples: I64) -> tuple[I64, I64]:
        """For each sample number its source, and which sample of that source it is, from 0."""
        periods = samples // self.period
        within = samples - periods * self.period
        source = self._source[within].astype(np.int64)
        return source, periods * self.counts[source] + self._nth[within]

    def taken(self, samples: int) -> I64:
        """How many of the first `samples` samples each source gave."""
        periods, rest = divmod(samples, self.period)
        return periods * self.counts + np.bincount(self._source[:rest], minlength=len(self.counts))


@lru_cache(maxsize=64)
def quota(weights: tuple[float, ...]) -> Quota:
    """The quota for checked weights; kept, because a changed schedule asks again for those of its past."""
    return Quota(quantise(weights))


def quantise(weights: Sequence[float]) -> list[int]:
    """Whole numbers in the proportion of the weights, with a sum of at most 65,536; 0 only for a weight of 0.

    Weights that add up to 1 with four decimals are kept as they are. Others are nearly always met to 1e-6 with up to
    five sources; random weights of 20 sources were at worst 5e-6 off, of 1,000 8e-6: half a turn of a period.
    """
    largest = max(weights)
    scaled = [weight / largest for weight in weights]  # so that the sum of huge weights is not infinite
    total = math.fsum(scaled)
    shares = [weight / total for weight in scaled]
    period = _best_period(shares)
    return [round(share * period) for share in shares]


def _best_period(shares: Sequence[float]) -> int:
    if sum(share > 0 for share in shares) == 1:
        return 1
    error = _errors(shares)
    for tolerance in TOLERANCES:
        if (near := error <= tolerance).any():
            return int(near.argmax()) + 1
    best = int(error.argmin())
    if error[best] == np.inf:
        smallest = min(share for share in shares if share > 0)
        raise UsageError(
            f"{len(shares)} weights, of which the smallest is {smallest:.3g} of the whole: samples are shared out "
            f"in turns of at most {MAX_PERIOD:,}. Raise the smallest weight, or set it to 0."
        )
    return best + 1


def _errors(shares: Sequence[float]) -> NDArray[np.float64]:
    """How far off the worst share is with each period from 1 on; infinite where a period does not work out."""
    periods = np.arange(1.0, MAX_PERIOD + 1)
    total, worst = np.zeros(MAX_PERIOD), np.zeros(MAX_PERIOD)
    for share in shares:
        exact = share * periods
        count = np.rint(exact)
        total += count
        np.maximum(worst, np.abs(np.subtract(exact, count, out=exact), out=exact), out=worst)
    smallest = min(share for share in shares if share > 0)
    drawn = np.rint(smallest * periods) > 0  # a source with a weight has to have a turn
    return np.where(drawn & (total == periods), worst / periods, np.inf)


def _turns(counts: I64) -> NDArray[np.int32]:
    """The source at each place of a period, by earliest deadline; on a tie the earlier source."""
    release, ticket = _windows(counts)
    sources, period = len(counts), int(counts.sum())
    first = np.searchsorted(release, np.arange(period + 1)).tolist()
    turns, waiting = [], list[int]()
    for place in range(period):
        for one in ticket[first[place] : first[place + 1]]:
            heappush(waiting, one)
        turns.append(heappop(waiting) % sources)
    return np.array(turns, np.int32)


def _windows(counts: I64) -> tuple[I64, list[int]]:
    """First place and ticket (deadline, then source, as one number) of each sample of a period, by first place."""
    source = np.repeat(np.arange(len(counts)), counts)
    nth, count, period = _occurrence(source), counts[source], int(counts.sum())
    release = nth * period // count
    deadline = -(-(nth + 1) * period // count)
    order = np.argsort(release, kind="stable")
    return release[order], (deadline * len(counts) + source)[order].tolist()


def _occurrence(source: NDArray[np.integer]) -> I64:
    """For each entry how many of the same value stand before it."""
    order = np.argsort(source, kind="stable")
    ordered = source[order]
    nth = np.empty(len(source), np.int64)
    nth[order] = np.arange(len(source)) - np.searchsorted(ordered, ordered)
    return nth
