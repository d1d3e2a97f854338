"""A curve in a few lines of text: braille for the line, 2 x 4 dots in each character. Or in a few characters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # bits of a braille character by column and row
BRAILLE = 0x2800
LEVELS = "▁▂▃▄▅▆▇█"
Points = Sequence[tuple[float, float]]


def draw_chart(curve: Points, marks: Points, *, width: int, height: int) -> list[Text]:
    """Lines of the width: the curve, and an `o` at each of the marks.

    The first tenth of the curve is cut off at the top where it is higher than all that follows: the fall at the start
    of a run would press the rest into one row.
    """
    from rich.text import Text

    curve = [(x, y) for x, y in curve if math.isfinite(y)]
    marks = [(x, y) for x, y in marks if math.isfinite(y)]
    if not curve:
        return [Text("") for _ in range(height)]
    low, high = _limits(curve, marks)
    labels = (f"{high:.2f} ", f"{low:.2f} ")
    margin = max(map(len, labels))
    first = min(curve[0][0], marks[0][0] if marks else math.inf)
    frame = _Frame(first, max(curve[-1][0], marks[-1][0] if marks else 0), low, high, width - margin, height)
    return _lines(frame, curve, marks, labels, margin)


def sparkline(values: Sequence[float | None], width: int = 24) -> str:
    """A character for each value, or for the mean of several; nothing for fewer than two, which have no course."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return ""
    places = min(width, len(known))
    edges = [round(at * len(known) / places) for at in range(places + 1)]
    means = [sum(known[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(LEVELS[round((mean - low) * scale)] for mean in means)


class _Frame:
    """Where a value lies: dots to the right, dots down from the top."""

    def __init__(self, first: float, last: float, low: float, high: float, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._first, self._low = first, low
        self._across, self._up = max(last - first, 1e-9), max(high - low, 1e-9)

    def column(self, x: float) -> int:
        return _clamp(round((x - self._first) / self._across * (2 * self.width - 1)), 2 * self.width - 1)

    def row(self, y: float) -> int:
        most = 4 * self.height - 1
        return most - _clamp(round((y - self._low) / self._up * most), most)


def _limits(curve: Points, marks: Points) -> tuple[float, float]:
    later = [y for _, y in curve[len(curve) // 10 :]] + [y for _, y in marks]
    return min(later), max(later)


def _lines(frame: _Frame, curve: Points, marks: Points, labels: tuple[str, str], margin: int) -> list[Text]:
    from rich.text import Text

    cells = _plot(frame, curve)
    marked = {(frame.row(y) // 4, frame.column(x) // 2) for x, y in marks}
    lines = []
    for row, bits in enumerate(cells):
        label = labels[0] if row == 0 else labels[1] if row == frame.height - 1 else ""
        dots = "".join(chr(BRAILLE + cell) if cell else " " for cell in bits)
        line = Text.assemble((label.rjust(margin), "dim"), (dots, "curve"), no_wrap=True)
        for column in [column for level, column in marked if level == row]:
            line.plain = f"{line.plain[: margin + column]}o{line.plain[margin + column + 1 :]}"
            line.stylize("mark", margin + column, margin + column + 1)
        lines.append(line)
    return lines


def _plot(frame: _Frame, curve: Points) -> list[list[int]]:
    """Bits of the braille characters: one mean for each column of dots, joined up and down."""
    cells = [[0] * frame.width for _ in range(frame.height)]
    before: tuple[int, int] | None = None
    for column, row in _column_means(frame, curve):
        start = row if before is None else before[1]
        for filled, level in _between(before[0] if before else column, start, column, row):
            cells[level // 4][filled // 2] |= DOTS[filled % 2][level % 4]
        before = (column, row)
    return cells


def _column_means(frame: _Frame, curve: Points) -> list[tuple[int, int]]:
    sums: dict[int, list[float]] = {}
    for x, y in curve:
        entry = sums.setdefault(frame.column(x), [0.0, 0.0])
        entry[0] += y
        entry[1] += 1
    return [(column, frame.row(total / count)) for column, (total, count) in sorted(sums.items())]


def _between(x0: int, y0: int, x1: int, y1: int) -> list[tuple[int, int]]:
    """Dots of a straight line from one dot to another."""
    steps = max(abs(x1 - x0), abs(y1 - y0), 1)
    return [(x0 + round((x1 - x0) * i / steps), y0 + round((y1 - y0) * i / steps)) for i in range(steps + 1)]


def _clamp(value: int, most: int) -> int:
    return max(0, min(most, value))
