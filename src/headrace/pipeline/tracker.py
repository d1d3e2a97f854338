"""Tracker: what tasks report, added up."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import msgspec

from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.plan import Task
from headrace.pipeline.progress import Progress, RunningTask, TaskStates
from headrace.pipeline.results import Advanced, Finished, TaskResult

DONE = 1


class Tracker:
    """Adds up what tasks report, keeping what was resumed out of the rates."""

    def __init__(self, tasks: Sequence[Task], earlier: Sequence[TaskResult]) -> None:
        self._sizes = {task.index: task.size for task in tasks}  # with gaps, where others do the rest of the plan
        self._total = sum(self._sizes.values())
        self._done_tasks = bytearray(max(self._sizes, default=-1) + 1)
        self._started = time.monotonic()
        self._earlier, self._done = Counts(), Counts()
        self._stages = Stages()
        self._running: dict[int, Advanced] = {}
        for result in earlier:
            self._earlier.add(result.counts)
            self._done_tasks[result.index] = DONE

    def take(self, message: Advanced | Finished) -> None:
        if isinstance(message, Advanced):
            self._running[message.index] = message
            return
        self._running.pop(message.result.index, None)
        self._done.add(message.result.counts)
        self._stages.add(message.stages)
        self._done_tasks[message.result.index] = DONE

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
            tasks_done=self._done_tasks.count(DONE),
            tasks=len(self._sizes),
            input_bytes=everything.input_bytes,
            total_input_bytes=self._total,
            counts=everything,
            seconds=seconds,
            text_mb_per_s=now.text_bytes / 1e6 / seconds,
            tokens_per_s=now.tokens / seconds,
            eta_seconds=_eta(self._total - everything.input_bytes, now.input_bytes / seconds),
            stage_shares=_shares(stages),
        )

    def task_states(self) -> TaskStates:
        """Task by task; asked for once a second, 50 us for 10,000 tasks."""
        running = [
            RunningTask(index, min(told.counts.input_bytes, self._sizes[index]), self._sizes[index], told.counts.tokens)
            for index, told in sorted(self._running.items())
        ]
        return TaskStates(_ranges(self._done_tasks), running)


def _ranges(done: bytearray) -> str:
    """Stretches of tasks that are done: "0-11,13"."""
    stretches = [(found.start(), found.end() - 1) for found in re.finditer(rb"\x01+", done)]
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in stretches)


def _eta(left: int, rate: float) -> float | None:
    return max(left, 0) / rate if rate else None


def _shares(stages: Stages) -> dict[str, float]:
    seconds: dict[str, float] = msgspec.to_builtins(stages)
    total = sum(seconds.values())
    return {name: value / total if total else 0.0 for name, value in seconds.items()}
