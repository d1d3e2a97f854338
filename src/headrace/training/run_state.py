"""What a run is doing, as far as its folder tells: no other process is asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.locks import Locks

RUNNING, FINISHED, STOPPED, FAILED, EMPTY = "running", "finished", "stopped", "failed", "empty"
LOCK = Path("checkpoints") / ".lock"
SILENT = 60.0  # seconds without an event, or three intervals of the log if those are longer


def run_state(
    folder: Path,
    *,
    last: Mapping[str, Any] | None,
    steps: int = 0,
    interval: float = 0.0,
    stop_at_nonfinite: bool = True,
) -> str:
    """By its newest event, the lock of its checkpoints, and how long it has been silent."""
    if last is None:
        return EMPTY
    kind = last.get("kind")
    if kind == "end":
        return FINISHED if (last.get("step") or 0) >= steps else STOPPED
    if kind == "error" or (kind == "step" and last.get("skipped") and stop_at_nonfinite):
        return FAILED
    held = Locks().holds(folder / LOCK)
    if held is not None:
        return RUNNING if held else STOPPED
    silent = time.time() - (last.get("t") or 0.0)
    return RUNNING if silent < max(SILENT, 3 * interval) else STOPPED
