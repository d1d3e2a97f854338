"""The lowest and highest loss of single steps along a run, in bounded memory: what a mean over an interval hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.training.history import finite

MOST = 4096
Point = tuple[int, float, float]  # step, lowest, highest


class LossRange:
    """Merges neighbours when it is full, and from then on takes in twice as many at once; a spike stays."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._stride, self._taken = 1, 1  # intervals in a point, and in the newest one

    def add(self, event: Mapping[str, Any]) -> None:
        step = event.get("step")
        if step is None or event.get("kind") not in ("run", "step"):
            return
        begins = step if event["kind"] == "run" else step - (event.get("steps") or 1)
        while self._points and self._points[-1][0] > begins:  # a run that went back
            self._points.pop()
            self._taken = self._stride
        losses = [loss for loss in event.get("losses") or [] if finite(loss) is not None]
        if losses:
            self._add((step, min(losses), max(losses)))

    def _add(self, point: Point) -> None:
        if self._points and self._taken < self._stride:
            self._taken += 1
            self._points[-1] = _joined(self._points[-1], point)
            return
        if len(self._points) == MOST:
            self._points = [_joined(*self._points[at : at + 2]) for at in range(0, MOST, 2)]
            self._stride *= 2
        self._taken = 1
        self._points.append(point)

    def columns(self) -> tuple[list[int], list[float], list[float]]:
        """Steps, lowest, highest."""
        return [p[0] for p in self._points], [p[1] for p in self._points], [p[2] for p in self._points]


def _joined(first: Point, second: Point) -> Point:
    return second[0], min(first[1], second[1]), max(first[2], second[2])
