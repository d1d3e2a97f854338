"""Where a run stands, and who wants to know."""

from __future__ import annotations

from typing import Protocol

import msgspec

from headrace.pipeline.counts import Counts


class Progress(msgspec.Struct, frozen=True):
    tasks_done: int
    tasks: int
    input_bytes: int
    total_input_bytes: int
    counts: Counts  # of everything, what earlier runs did included
    seconds: float
    text_mb_per_s: float  # of this run
    tokens_per_s: float
    eta_seconds: float | None
    stage_shares: dict[str, float]


class RunningTask(msgspec.Struct, frozen=True, array_like=True):
    """A task that a worker has: how far it is in its input, and what came of it. A list of four numbers in JSON."""

    index: int
    input_bytes: int
    total_input_bytes: int
    tokens: int


class TaskStates(msgspec.Struct, frozen=True):
    """Which tasks are done and which are being done; all others wait."""

    done: str  # ranges of task numbers, "0-11,13": short however many there are, because they are done nearly in order
    running: list[RunningTask]


class Observer(Protocol):
    """Who wants to know: the terminal, the event log, a notebook."""

    def notice(self, text: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...


class Silent:
    def notice(self, text: str) -> None:
        pass

    def progress(self, progress: Progress) -> None:
        pass
