"""Steps: one ends with the optimizer's step, however many backward passes it gathered. The first ones are warm-up."""

from __future__ import annotations

from time import perf_counter, process_time
from typing import Any

from .clock import OWN, Clock, Key  # noqa: TID252

TIMELINE = 2000  # steps that are kept one by one


class Fold:
    """Steps added up."""

    def __init__(self) -> None:
        self.steps = 0
        self.seconds = 0.0
        self.cpu = 0.0
        self.tokens = 0
        self.phases: dict[str, float] = {}
        self.sites: dict[Key, list[float]] = {}

    def add(self, seconds: float, cpu: float, tokens: int, phases: dict[str, float]) -> None:
        self.steps += 1
        self.seconds += seconds
        self.cpu += cpu
        self.tokens += tokens
        for name, value in phases.items():
            self.phases[name] = self.phases.get(name, 0.0) + value

    def add_sites(self, sites: dict[Key, list[float]]) -> None:
        for key, entry in sites.items():
            mine = self.sites.setdefault(key, [0.0, 0.0, 0.0])
            for index, value in enumerate(entry):
                mine[index] += value

    def as_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "tokens": self.tokens,
            "phases": self.phases,
            "sites": [[*key, *entry] for key, entry in list(self.sites.items())],
        }


class Steps:
    def __init__(self, clock: Clock, warmup: int) -> None:
        self.clock = clock
        self.warmup = max(1, warmup)
        # The first step has the start-up in it, the next ones compile and fill caches.
        self.first, self.early, self.late = Fold(), Fold(), Fold()
        self.timeline: list[dict[str, float]] = []
        self.count = 0
        self.tokens = 0
        self.backwards = 0
        self.compiling = 0.0  # seconds
        self._began = perf_counter()
        self._cpu = process_time()

    @property
    def fold(self) -> Fold:
        """Where the step that goes on now will be added."""
        if self.count == 0:
            return self.first
        return self.early if self.count < self.warmup else self.late

    def finish(self) -> None:
        now, cpu = perf_counter(), process_time()
        phases, sites = self.clock.take()
        # What looking at batches and gradients took is not the script's, and compiling is not every step's.
        compiling = phases.pop("compile", 0.0)
        own = phases.pop(OWN, 0.0) + compiling
        self.compiling += compiling
        fold = self.fold
        fold.add(now - self._began - own, cpu - self._cpu, self.tokens, phases)
        fold.add_sites(sites)
        if len(self.timeline) < TIMELINE:
            self.timeline.append(phases)
        self.count += 1
        self.tokens = self.backwards = 0
        self._began, self._cpu = now, cpu

    def regroup(self, size: int) -> None:
        """So many steps have turned out to be one, twice by now. What was counted till then becomes warm-up."""
        late = self.timeline[-2 * size :]
        self.timeline[-2 * size :] = [_sum(late[:size]), _sum(late[size:])]
        self.count -= 2 * size - 2
        self.first, self.early, self.late = Fold(), Fold(), Fold()
        for row in self.timeline:
            self.first.add(sum(row.values()), 0.0, 0, row)

    def as_dict(self) -> dict[str, Any]:
        folds = {name: getattr(self, name).as_dict() for name in ("first", "early", "late")}
        counts = {"count": self.count, "warmup": self.warmup, "compiling": self.compiling}
        return {**counts, "timeline": self.timeline, **folds}


def _sum(rows: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: sum(row.get(name, 0.0) for row in rows) for name in names}
