"""Tracker: what tasks report, added up."""

from __future__ import annotations

import time

import msgspec

from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.progress import Progress
from headrace.pipeline.results import Advanced, Finished, TaskResult


class Tracker:
    """Adds up what tasks report, keeping what was resumed out of the rates."""

    def __init__(self, tasks: int, total_input_bytes: int, earlier: list[TaskResult]) -> None:
        self._tasks, self._total = tasks, total_input_bytes
        self._started = time.monotonic()
        self._earlier, self._done = Counts(), Counts()
        self._stages = Stages()
        self._tasks_done = len(earlier)
        self._running: dict[int, Advanced] = {}
        for result in earlier:
            self._earlier.add(result.counts)

    def take(self, message: Advanced | Finished) -> None:
        if isinstance(message, Advanced):
            self._running[message.index] = message
            return
        self._running.pop(message.result.index, None)
        self._done.add(message.result.counts)
        self._stages.add(message.stages)
        self._tasks_done += 1

    def progress(self) -> Progress:
        now, stages, everything = Counts(), Stages(), Counts()
        now.add(self._done)
        stages.add(self._stages)
        for running in self._running.values():
            now.add(running.counts)
            stages.add(running.stages)
        everything.add(self._earlier)
        everything.add(now)
        seconds = max(time.monotonic() - self._started, 1e-9)
        return Progress(
            tasks_done=self._tasks_done,
            tasks=self._tasks,
            input_bytes=everything.input_bytes,
            total_input_bytes=self._total,
            counts=everything,
            seconds=seconds,
            text_mb_per_s=now.text_bytes / 1e6 / seconds,
            tokens_per_s=now.tokens / seconds,
            eta_seconds=_eta(self._total - everything.input_bytes, now.input_bytes / seconds),
            stage_shares=_shares(stages),
        )


def _eta(left: int, rate: float) -> float | None:
    return max(left, 0) / rate if rate else None


def _shares(stages: Stages) -> dict[str, float]:
    seconds: dict[str, float] = msgspec.to_builtins(stages)
    total = sum(seconds.values())
    return {name: value / total if total else 0.0 for name, value in seconds.items()}
