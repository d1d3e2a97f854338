"""What a run is doing, as far as its folder tells: no other process is asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.locks import Locks

RUNNING, FINISHED, STOPPED, FAILED, EMPTY = "running", "finished", "stopped", "failed", "empty"
LOCK = Path("checkpoints") / ".lock"
SILENT = 60.0  # seconds without an event, or INTERVALS of the log if those are longer
INTERVALS = 3


def run_state(
    folder: Path,
    *,
    last: Mapping[str, Any] | None,
    steps: int = 0,
    interval: float = 0.0,
    stop_at_nonfinite: bool = True,
) -> str:
    """By its newest event, the lock of its checkpoints, and how long it has been silent."""
    told = last or {}
    kind = told.get("kind")
    return judged(
        end=(told.get("step") or 0) if kind == "end" else None,
        steps=steps,
        error=kind == "error",
        nonfinite=kind == "step" and bool(told.get("skipped")) and stop_at_nonfinite,
        held=Locks().holds(folder / LOCK),
        silent=None if last is None else time.time() - (told.get("t") or 0.0),
        interval=interval,
    )


def judged(
    *,
    end: int | None,
    steps: int,
    error: bool,
    nonfinite: bool,
    held: bool | None,
    silent: float | None,
    interval: float,
) -> str:
    """`silent`: seconds since its last word, None before the first. A lock that nobody holds ends every doubt."""
    if end is not None:
        return FINISHED if end >= steps else STOPPED
    if error:
        return FAILED
    if held:
        return RUNNING
    if nonfinite:
        return FAILED
    if silent is None:
        return EMPTY
    return RUNNING if held is None and silent < max(SILENT, INTERVALS * interval) else STOPPED
