"""Prepare: how far a dataset in the making is, task by task; also how it went, when it is done."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from headrace.dashboard.data_folder import MANIFEST, WORK, Stamp, stamp_of
from headrace.dashboard.prepare_log import PrepareLine, PrepareLog, RunningLine
from headrace.errors import StoreError
from headrace.locks import Locks
from headrace.storage import read_metadata

EVENTS, LOCK = "events.jsonl", "lock"
QUIET = 60.0  # seconds without an event, where the kernel's locks cannot be seen
CELLS = 500  # shown at most: of more tasks, each cell is some neighbours
KEPT = 256  # logs that are followed at a time


class TaskCounts(msgspec.Struct):
    tokens: int = 0


class TaskDone(msgspec.Struct):
    """What is read of a task-*.json."""

    index: int
    counts: TaskCounts


class Preparation:
    """One dataset folder's `.headrace`, looked at again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._work = folder, folder / WORK
        self.log = PrepareLog(self._work / EVENTS)
        self._lock = threading.Lock()
        self._results: dict[str, tuple[int, TaskDone]] = {}  # by file: when it was written, what it says

    def state(self) -> str:
        """ready: there is a manifest; preparing: somebody holds the folder; stopped: nobody does."""
        if (self.folder / MANIFEST).is_file():
            return "ready"
        return "preparing" if self._is_held() else "stopped"

    def _is_held(self) -> bool:
        """By the kernel's list of locks, or else by how old the log's last line is."""
        held = Locks().holds(self._work / LOCK)
        return held if held is not None else (self._work / LOCK).exists() and _age(self._work / EVENTS) < QUIET

    def summary(self) -> dict[str, Any]:
        """The numbers that a list of datasets shows."""
        with self._lock:
            self.log.refresh()
            state = self.state()
            return {"state": state, **self._numbers(state), "updated": self.log.updated}

    def as_dict(self) -> dict[str, Any] | None:
        """How far it is, task by task; of a finished dataset how it went; None where nothing is known of that."""
        with self._lock:
            self.log.refresh()
            if self.log.start is None:
                return None
            state = self.state()
            return {
                "state": state,
                **self._numbers(state),
                "stage_shares": (self.log.finished or self.log.progress or PrepareLine()).stage_shares,
                "shards": self._cells(state),
                "rate": self.log.rate.as_dict(),
                "command": self.log.start.command if state == "stopped" else None,
                "problem": self.log.failed.error if self.log.failed and state == "stopped" else None,
                "updated": self.log.updated,
            }

    def _numbers(self, state: str) -> dict[str, Any]:
        log = self.log
        told, start = log.progress or PrepareLine(), log.start or PrepareLine()
        over = log.finished if state == "ready" else None
        total = told.total_input_bytes or start.total_input_bytes
        tasks = told.tasks or start.tasks
        rates = over if over is not None and over.text_mb_per_s is not None else told
        counts = over.totals if over is not None else told.counts
        return {
            "share": 1.0 if state == "ready" else min(1.0, told.input_bytes / total) if total else 0.0,
            "tasks_done": tasks if state == "ready" else told.tasks_done or start.resumed,
            "tasks": tasks,
            "seconds": rates.seconds,
            "eta_seconds": told.eta_seconds if state == "preparing" else None,
            "text_mb_per_s": rates.text_mb_per_s,
            "tokens_per_s": rates.tokens_per_s,
            "documents": counts.documents,
            "tokens": counts.tokens,
            "rejects": counts.rejects,
        }

    def _cells(self, state: str) -> list[dict[str, Any]]:
        told, start = self.log.progress or PrepareLine(), self.log.start or PrepareLine()
        tasks = told.tasks or start.tasks
        tokens = _tokens_by_task(self.folder, stamp_of(self.folder)) if state == "ready" else self._finished_tasks()
        done = set(range(tasks)) if state == "ready" else set(tokens) | parse_ranges(told.done or "", tasks)
        running = {line.index: line for line in told.running if state == "preparing"}
        size = max(1, -(-tasks // CELLS))
        rows = [_row(index, done, running, tokens) for index in range(tasks)]
        return [_cell(rows[first : first + size]) for first in range(0, tasks, size)]

    def _finished_tasks(self) -> dict[int, int]:
        """Tokens by task: what the task-*.json say; each is read once, because it is written once."""
        found: dict[str, tuple[int, TaskDone]] = {}
        try:
            entries = [entry for entry in os.scandir(self._work) if _is_result(entry.name)]
        except OSError:
            return {}
        for entry in entries:
            try:
                written = entry.stat().st_mtime_ns
                known = self._results.get(entry.name)
                found[entry.name] = known if known and known[0] == written else (written, _read_result(entry.path))
            except (OSError, msgspec.DecodeError, UnicodeDecodeError):
                continue  # gone, or being done again
        self._results = found
        return {result.index: result.counts.tokens for _, result in found.values()}


class Preparations:
    """Preparations by folder, kept so that no log is read twice."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Preparation] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: Path) -> Preparation:
        with self._lock:
            found = self._kept.setdefault(folder, Preparation(folder))
            self._kept.move_to_end(folder)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return found


def parse_ranges(text: str, below: int) -> set[int]:
    """The numbers in "0-11,13" that are less than `below`; what is not written like that is passed over."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if part.isascii() and first.isdecimal() and (last.isdecimal() or not dash):
            found.update(range(int(first), min(int(last or first) + 1, below)))
    return found


@lru_cache(maxsize=KEPT)
def _tokens_by_task(folder: Path, stamp: Stamp | None) -> dict[int, int]:
    """A shard carries its task's number in its name. A task without one had nothing to give, or was not needed."""
    found: dict[int, int] = {}
    try:
        shards = read_metadata(folder).shards
    except (StoreError, OSError):
        return found
    for shard in shards:
        number = shard.name.rpartition("-")[2]
        if number.isdecimal():
            found[int(number)] = found.get(int(number), 0) + shard.tokens
    return found


def _row(
    index: int, done: set[int], running: Mapping[int, RunningLine], tokens: Mapping[int, int]
) -> tuple[int, float, int, str]:
    """Number, share, tokens and state of one task."""
    if index in done:
        return index, 1.0, tokens.get(index, 0), "done"
    if index in running:
        told = running[index]
        return index, told.input_bytes / max(told.total_input_bytes, 1), told.tokens, "running"
    return index, 0.0, 0, "waiting"


def _cell(rows: list[tuple[int, float, int, str]]) -> dict[str, Any]:
    """One task, or some neighbours as one: it runs when any of them does, or when some are done and some are not."""
    first, last, states = rows[0][0], rows[-1][0], {row[3] for row in rows}
    name = f"shard-{first:05d}"
    return {
        "index": first,
        "tasks": len(rows),
        "name": name if first == last else f"{name} to {last:05d}",
        "share": sum(row[1] for row in rows) / len(rows),
        "tokens": sum(row[2] for row in rows),
        "state": states.pop() if len(states) == 1 else "running",
    }


def _is_result(name: str) -> bool:
    return name.startswith("task-") and name.endswith(".json")


def _read_result(path: str) -> TaskDone:
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=TaskDone)


def _age(log: Path) -> float:
    try:
        return time.time() - os.stat(log).st_mtime
    except OSError:
        return float("inf")
