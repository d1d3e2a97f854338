"""What is known of a run from its events, for those who show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace.training.history import History, finite, span_shares

MEMORY = 0.99  # each interval counts for so much less than the next one: about 100 of them make the rate


class RunStatus:
    """The newest of everything, and the curves. Events that it does not know change nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.history = History(max_points=1024)
        self.run: Mapping[str, Any] = {}
        self.last: Mapping[str, Any] = {}  # the newest step event
        self.evaluated: Mapping[str, Any] = {}
        self.sample: Mapping[str, Any] = {}
        self.checkpoint: int | None = None
        self.best: tuple[float, int] | None = None
        self.step = 0
        self._clock, self._changed = clock, clock()
        self._seconds = self._steps = 0.0
        self._intervals = 0

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event.get("kind")
        take = {"run": self._begin, "step": self._take_step, "eval": self._take_eval, "sample": self._take_sample}
        if kind in take:
            self.history.add(event)
            take[kind](event)
        elif kind == "checkpoint":
            self.checkpoint = event.get("step")
        if kind in ("step", "eval", "end") and (event.get("step") or 0) > self.step:
            self.step, self._changed = event["step"], self._clock()

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.run.get("steps") or 0

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 0.0

    def eta(self) -> float | None:
        """Seconds to the last step by the rate of late, evaluations included; None as long as nobody can know."""
        if not self._steps or not self.steps:
            return None
        left = (self.steps - self.step) * self._seconds / self._steps
        return max(0.0, left - (self._clock() - self._changed))

    def shares(self) -> dict[str, float]:
        return span_shares(self.last)

    def _begin(self, event: Mapping[str, Any]) -> None:
        self.run, self.step = event, event.get("step") or 0
        self._seconds, self._steps, self._intervals, self._changed = 0.0, 0.0, 0, self._clock()

    def _take_step(self, event: Mapping[str, Any]) -> None:
        self.last = event
        seconds, steps = finite(event.get("seconds")), event.get("steps")
        if not seconds or not steps:
            return
        self._intervals += 1
        if self._intervals == 2:  # the first has the warm-up in it, compilation too, and is left out when it can be
            self._seconds = self._steps = 0.0
        self._seconds = MEMORY * self._seconds + seconds
        self._steps = MEMORY * self._steps + steps

    def _take_eval(self, event: Mapping[str, Any]) -> None:
        self.evaluated = event
        loss = finite(event.get("val_loss"))
        if loss is not None and (self.best is None or loss < self.best[0]):
            self.best = (loss, event.get("step") or 0)

    def _take_sample(self, event: Mapping[str, Any]) -> None:
        self.sample = event
