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


class Observer(Protocol):
    """Who wants to know: the terminal, the event log, a notebook."""

    def notice(self, text: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...


class Silent:
    def notice(self, text: str) -> None:
        pass

    def progress(self, progress: Progress) -> None:
        pass
