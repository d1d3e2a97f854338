"""The data mix of a run: what each source gave, against what it was to give."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MAX_POINTS = 512  # merged in pairs beyond: as many as a chart can show


class Source(NamedTuple):
    """What one source gave up to a step, and its weight then."""

    samples: int
    tokens: int
    epochs: float
    target: float


class Point(NamedTuple):
    step: int
    sources: dict[str, Source]


class MixHistory:
    """What the `sources` of a run's step events say, in bounded memory.

    Counts are of everything up to a step, so a point that is left out takes nothing away from the ones that stay.
    """

    def __init__(self, most: int = MAX_POINTS) -> None:
        self._most = most
        self._points: list[Point] = []

    def add(self, event: Mapping[str, Any]) -> None:
        """An event of kind run or step; others, and steps of one source, say nothing about a mix."""
        if event.get("kind") == "run":
            self.drop_after(event.get("step") or 0)
        elif event.get("kind") == "step":
            self.add_step(event.get("step"), event.get("sources"))

    def add_step(self, step: Any, sources: Any) -> None:
        """Counts at a step; what is not made like the ones of a Trainer is left out."""
        if not isinstance(step, int) or not isinstance(sources, Mapping):
            return
        told = {str(name): _source(values) for name, values in sources.items() if isinstance(values, Mapping)}
        if not told:
            return
        self.drop_after(step - 1)
        self._points.append(Point(step, told))
        if len(self._points) > self._most:
            self._points = self._points[::-2][::-1]  # the newest stays

    def drop_after(self, step: int) -> None:
        """A run went back to this step: what came later does not count."""
        while self._points and self._points[-1].step > step:
            self._points.pop()

    def as_dict(self) -> dict[str, Any] | None:
        """The mix for a page; None where there is only one source."""
        if not self._points:
            return None
        newest = self._points[-1].sources
        drawn, weights = sum(told.samples for told in newest.values()), sum(told.target for told in newest.values())
        sources = [
            {
                "name": name,
                "target": told.target / (weights or 1.0),
                "actual": told.samples / (drawn or 1),
                "samples": told.samples,
                "tokens": told.tokens,
                "epochs": told.epochs,
                "share_over_steps": self._shares(name),
            }
            for name, told in newest.items()
        ]
        return {"steps": [point.step for point in self._points], "sources": sources}

    def _shares(self, name: str) -> list[float | None]:
        """Of the samples between a point and the one before; None where there were none."""
        found: list[float | None] = []
        before: Mapping[str, Source] = {}
        for point in self._points:
            drawn = {other: told.samples - _samples(before, other) for other, told in point.sources.items()}
            together = sum(drawn.values())
            found.append(drawn.get(name, 0) / together if together > 0 else None)
            before = point.sources
        return found


def mix_of(events: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The mix out of the events of a run, in their order; None for a run of one source."""
    history = MixHistory()
    for event in events:
        history.add(event)
    return history.as_dict()


def _source(told: Mapping[str, Any]) -> Source:
    counts = (int(_number(told.get(name))) for name in ("samples", "tokens"))
    return Source(*counts, *(_number(told.get(name)) for name in ("epochs", "target")))


def _samples(sources: Mapping[str, Source], name: str) -> int:
    return sources[name].samples if name in sources else 0


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else 0.0
