"""Weights that change at given samples. Every source goes on where it was, so a change repeats and skips nothing.

Each stretch between two changes is exact to one sample counted from its own start: what comes later cannot reach back
into samples that have been trained on. So after k changes a count is less than k + 1 samples off.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace.loading.quota import I64, quota


class Schedule:
    """Source and place within the source for any sample number, under weights {first sample: weight per source}."""

    def __init__(self, changes: Mapping[int, tuple[float, ...]]) -> None:
        ordered = sorted(changes)
        self._quotas = [quota(changes[start]) for start in ordered]
        self._starts = np.array(ordered, np.int64)
        self._taken = np.zeros((len(ordered), len(changes[ordered[0]])), np.int64)  # per source, at each start
        for i, length in enumerate(np.diff(self._starts).tolist()):
            self._taken[i + 1] = self._taken[i] + self._quotas[i].taken(length)

    def assign(self, samples: I64) -> tuple[I64, I64]:
        """For each sample number its source, and which sample of that source it is, from 0."""
        if not samples.size:
            return samples, samples
        first, last = self._stretch(np.array([samples.min(), samples.max()])).tolist()
        if first < 0:
            raise IndexError(f"sample {samples.min()}: samples are numbered from 0")
        return self._within(first, samples) if first == last else self._across(samples)

    def taken(self, sample: int) -> I64:
        """How many samples each source gave before this one."""
        i = int(self._stretch(np.array([sample]))[0])
        counted: I64 = self._taken[i] + self._quotas[i].taken(sample - int(self._starts[i]))
        return counted

    def _stretch(self, samples: I64) -> I64:
        return np.searchsorted(self._starts, samples, side="right") - 1

    def _within(self, i: int, samples: I64) -> tuple[I64, I64]:
        source, nth = self._quotas[i].assign(samples - self._starts[i])
        return source, nth + self._taken[i][source]

    def _across(self, samples: I64) -> tuple[I64, I64]:
        stretch = self._stretch(samples)
        source, nth = np.empty_like(samples), np.empty_like(samples)
        for i in sorted(set(stretch.tolist())):
            here = stretch == i
            source[here], nth[here] = self._within(i, samples[here])
        return source, nth
