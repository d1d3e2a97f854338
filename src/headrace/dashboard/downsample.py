"""Curves in no more points than a screen can show: the mean of each bucket, and for the loss its least and most.

A whole run of a million rows would take 200 ms each time. So every 64 rows are reduced once, when they come, and a
view of many rows is made out of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.dashboard.table import Table

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BUCKET = 64  # rows
DIGITS = 7
LOSS, LEAST, MOST = "train_loss", "train_loss_min", "train_loss_max"


class Reduced(NamedTuple):
    """A column in buckets: what was there, how often, and its extremes."""

    total: F64
    known: F64
    least: F64
    most: F64


class Levels:
    """The buckets of a table that grows, and is cut where a run went back."""

    def __init__(self, table: Table) -> None:
        self._table, self._done = table, 0  # whole buckets
        self._kept: dict[str, Reduced] = {}

    @property
    def nbytes(self) -> int:
        return self._done * 32 * len(self._kept)

    def extend(self) -> None:
        """Reduce the whole buckets that have come since the last time."""
        whole = len(self._table) // BUCKET
        self._done = min(self._done, whole)
        if whole == self._done:
            return
        starts = np.arange(self._done * BUCKET, whole * BUCKET, BUCKET)
        for name in self._table.names:
            new = _reduce(self._table, name, starts, whole * BUCKET)
            self._kept[name] = _joined(self._before(name), new)
        self._done = whole

    def cut(self) -> None:
        """The table lost rows behind some step."""
        self._done = min(self._done, len(self._table) // BUCKET)

    def grouped(self, name: str, first: int, high: int, group: int) -> Reduced:
        """From the bucket `first` up to the row `high`, each `group` of them as one."""
        whole = high // BUCKET
        cells = Reduced(*(part[first:whole] for part in self._kept[name]))
        if whole * BUCKET < high:
            cells = _joined(cells, _reduce(self._table, name, np.array([whole * BUCKET]), high))
        starts = np.arange(0, len(cells.total), group)
        return Reduced(
            np.add.reduceat(cells.total, starts),
            np.add.reduceat(cells.known, starts),
            np.fmin.reduceat(cells.least, starts),
            np.fmax.reduceat(cells.most, starts),
        )

    def _before(self, name: str) -> Reduced:
        """What is kept of a column; a column that came later has nothing in the buckets before."""
        nothing = np.full(self._done, np.nan)
        kept = self._kept.get(name, Reduced(np.zeros(self._done), np.zeros(self._done), nothing, nothing))
        return Reduced(*(part[: self._done] for part in kept))


def view(table: Table, levels: Levels, low: int, high: int, points: int) -> dict[str, list[Any]]:
    """The rows from low to high in at most so many points; every row, as it is, if there are no more of them."""
    points = max(1, points)
    size = -(-(high - low) // points)
    if size <= 1:
        return _exact(table, low, high)
    if size < 2 * BUCKET:
        starts = np.arange(low, high, size)
        found = {name: _reduce(table, name, starts, high) for name in table.names}
        return _answer(table, np.minimum(starts + size, high) - 1, found)
    levels.extend()
    first = low // BUCKET  # up to 63 rows more than asked for, where a point stands for 128 or more
    group = -(-(high - first * BUCKET) // (points * BUCKET))
    starts = np.arange(first * BUCKET, high, group * BUCKET)
    found = {name: levels.grouped(name, first, high, group) for name in table.names}
    return _answer(table, np.minimum(starts + group * BUCKET, high) - 1, found)


def thinned(values: NDArray[np.floating[Any]], points: int) -> list[float]:
    """The means of at most so many equal parts, without what is no number."""
    values = values[np.isfinite(values)].astype(np.float64)
    if len(values) <= points:
        return rounded(values)
    starts = np.arange(0, len(values), -(-len(values) // points))
    counts = np.diff(np.append(starts, len(values)))
    return rounded(np.add.reduceat(values, starts) / counts)


def rounded(values: NDArray[Any]) -> list[Any]:
    """To 7 digits; what is no number stays so and is null in JSON."""
    wide = values.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where((wide == 0) | ~np.isfinite(wide), 1.0, np.floor(np.log10(np.abs(wide))) + 1)
        places = DIGITS - size
        scale = 10.0 ** np.abs(places)  # a whole power of ten, so that dividing by it gives the nearest number
        found = np.where(places >= 0, np.round(wide * scale) / scale, np.round(wide / scale) * scale)
    made: list[Any] = found.tolist()
    return made


def _exact(table: Table, low: int, high: int) -> dict[str, list[Any]]:
    found = {"steps": table.steps[low:high].tolist()}
    for name in table.names:
        found[name] = rounded(_column(table, name)[low:high])
    if LOSS in found:
        found.setdefault(LEAST, found[LOSS])
        found.setdefault(MOST, found[LOSS])
    return found


def _answer(table: Table, ends: I64, found: dict[str, Reduced]) -> dict[str, list[Any]]:
    """A point stands at the last step of its bucket."""
    answer: dict[str, list[Any]] = {"steps": table.steps[ends].tolist()}
    for name, cells in found.items():
        answer[name] = rounded(_value(name, cells))
    if LOSS in found:
        answer.setdefault(LEAST, rounded(found[LOSS].least))
        answer.setdefault(MOST, rounded(found[LOSS].most))
    return answer


def _value(name: str, cells: Reduced) -> F64:
    if name == LEAST:
        return cells.least
    if name == MOST:
        return cells.most
    with np.errstate(divide="ignore", invalid="ignore"):
        # Steps that were left out are counted, everything else is averaged.
        total = cells.total if name == "skipped" else cells.total / cells.known
    return np.where(cells.known > 0, total, np.nan)


def _column(table: Table, name: str) -> NDArray[np.float32]:
    found = table.column(name)
    assert found is not None
    return found


def _reduce(table: Table, name: str, starts: I64, high: int) -> Reduced:
    """The rows from starts[0] to high, one bucket from each start."""
    values, at = _column(table, name)[starts[0] : high], starts - starts[0]
    known = ~np.isnan(values)
    return Reduced(
        np.add.reduceat(np.where(known, values, 0), at, dtype=np.float64),
        np.add.reduceat(known, at, dtype=np.float64),
        np.fmin.reduceat(values, at).astype(np.float64),
        np.fmax.reduceat(values, at).astype(np.float64),
    )


def _joined(before: Reduced, new: Reduced) -> Reduced:
    return Reduced(*(np.concatenate(parts) for parts in zip(before, new, strict=True)))
