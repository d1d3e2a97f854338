"""Table: the rows of a run at full resolution, in arrays.

A row takes 16 bytes for its step and its place in the file and 4 for every column that has a value: about 90 bytes on a
CPU, so a million of them 90 MB. Numbers are kept to 7 digits, which no curve can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
Numbers = TypeVar("Numbers", F32, I64)
FIRST = 1024  # rows


class Table:
    """Steps only grow; a column that no row has yet takes no memory."""

    def __init__(self) -> None:
        self.count = 0
        self._steps: I64 = np.empty(FIRST, np.int64)
        self._offsets: I64 = np.empty(FIRST, np.int64)  # where the row's line ends in the file
        self._columns: dict[str, F32] = {}

    def __len__(self) -> int:
        return self.count

    @property
    def steps(self) -> I64:
        return self._steps[: self.count]

    @property
    def offsets(self) -> I64:
        return self._offsets[: self.count]

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    @property
    def last_step(self) -> int:
        return int(self._steps[self.count - 1]) if self.count else -1

    @property
    def nbytes(self) -> int:
        return self.count * (16 + 4 * len(self._columns))

    def column(self, name: str) -> F32 | None:
        found = self._columns.get(name)
        return None if found is None else found[: self.count]

    def append(self, steps: I64, offsets: I64, columns: Mapping[str, F32]) -> None:
        """Rows whose steps grow, and that come after the last one."""
        start, stop = self.count, self.count + len(steps)
        self._make_room(stop)
        self._steps[start:stop], self._offsets[start:stop] = steps, offsets
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = np.full(len(self._steps), np.nan, np.float32)
            self._columns[name][start:stop] = values
        for name in self._columns.keys() - columns.keys():
            self._columns[name][start:stop] = np.nan
        self.count = stop

    def drop_after(self, step: int) -> bool:
        """Forget the rows behind a step; whether there were any."""
        kept = int(np.searchsorted(self.steps, step, side="right"))
        dropped, self.count = kept < self.count, kept
        return dropped

    def rows_behind(self, offset: int) -> int:
        """The first row whose line ends behind this place of the file."""
        return int(np.searchsorted(self.offsets, offset, side="right"))

    def rows_between(self, first: int | None, last: int | None) -> tuple[int, int]:
        """Rows of the steps from first to last, both counted in."""
        low = 0 if first is None else int(np.searchsorted(self.steps, first, side="left"))
        high = self.count if last is None else int(np.searchsorted(self.steps, last, side="right"))
        return low, max(low, high)

    def _make_room(self, rows: int) -> None:
        """Twice as much as before; pages that were never written to take no memory."""
        capacity = len(self._steps)
        if rows <= capacity:
            return
        capacity = max(rows, 2 * capacity)
        self._steps, self._offsets = _grown(self._steps, capacity), _grown(self._offsets, capacity)
        self._columns = {name: _grown(values, capacity) for name, values in self._columns.items()}


def _grown(values: Numbers, capacity: int) -> Numbers:
    grown = np.empty(capacity, values.dtype)
    grown[: len(values)] = values
    return grown
