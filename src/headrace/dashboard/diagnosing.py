"""The diagnosis of a run for its page, out of its newest intervals: a long run costs no more than a short one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.dashboard.downsample import thinned
from headrace.dashboard.follow import read_tail
from headrace.dashboard.lines import decode_whole
from headrace.dashboard.live import LiveRun
from headrace.diagnosis import training
from headrace.diagnosis.report import Fix, Report
from headrace.diagnosis.tree import headline, plain_tree

TAIL = 512 * 1024  # about 900 intervals
LOSSES = 2000  # of the whole run, each the mean of some steps if it is longer
NEWEST = 20
PAUSE = 5.0  # seconds before a run that goes on is diagnosed again
KEPT = 64


class Diagnoses:
    """Kept until the events grow, and for five seconds even then."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, tuple[float, str, dict[str, Any] | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, run: LiveRun) -> dict[str, Any] | None:
        """None before the first interval is over."""
        cursor = f"{run.cursor()} {run.full}"
        with self._lock:
            at, before, found = self._kept.get(run.folder, (float("-inf"), "", None))
        if before == cursor or (found is not None and time.monotonic() - at < PAUSE):
            return found
        found = _diagnose(run)
        with self._lock:
            self._kept[run.folder] = (time.monotonic(), cursor, found)
            self._kept.move_to_end(run.folder)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def _diagnose(run: LiveRun) -> dict[str, Any] | None:
    events = _newest(run)
    with run.lock:
        table = run.state.steps
        known = run.full or (len(table) > 0 and table.offsets[0] == 0)  # from its first steps on
        losses, norms = _column(table.column("train_loss")), _column(table.column("grad_norm"))
    found = training.run_of(run.folder, events)._replace(losses=losses if known else [], norms=norms)
    return answer(training.report_of(found)) if found.intervals else None


def _newest(run: LiveRun) -> list[dict[str, Any]]:
    """The last intervals; what the run says of itself comes first if it is further back."""
    try:
        tail, start = read_tail(run.events, TAIL)
    except OSError:
        return []
    events = [decode_whole(text) for text in tail.split(b"\n") if text]
    if start and not any(event.get("kind") == "run" for event in events):
        known = [event for event in events if event.get("kind") == "step"]
        return [run.state.about, *known[:1], *events]
    return events


def _column(values: NDArray[np.float32] | None) -> list[float]:
    """The last ones as they are, because it matters whether they are numbers."""
    if values is None:
        return []
    newest: list[float] = values[-NEWEST:].tolist()
    return thinned(values[:-NEWEST], LOSSES) + newest


def answer(report: Report) -> dict[str, Any]:
    return {
        "headline": headline(report),
        "verdict": report.verdict,
        "kind": report.kind,
        "tree": plain_tree(report),
        "phases": [{"name": phase.name, "ms": phase.ms, "share": phase.share} for phase in report.phases],
        "fixes": [_fix(rank, fix) for rank, fix in enumerate(report.fixes, 1)],
        "missing": report.missing,
    }


def _fix(rank: int, fix: Fix) -> dict[str, Any]:
    return {
        "rank": rank,
        "title": fix.title,
        "speedup": fix.speedup,
        "place": fix.site.place if fix.site else None,
        "code": fix.site.code if fix.site else None,
        "evidence": fix.evidence,
        "advice": fix.advice,
    }
