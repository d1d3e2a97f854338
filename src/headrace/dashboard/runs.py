"""Runs: the list of all runs in a folder, kept up to date by looking at what changed."""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from headrace.dashboard.facts import Facts
from headrace.dashboard.folder import Folder
from headrace.dashboard.summary import summarise
from headrace.locks import Locks

CURVES = 0.1  # seconds that a look may spend on histories; a thread reads the others
FRESH = 0.9  # seconds
SETTLED = ("finished",)  # does not change with time alone


class Runs:
    """Versions count up, and each summary has the one in which it changed: a reader asks for what is newer."""

    def __init__(self, folder: Folder, data: Path) -> None:
        self.folder, self._data = folder, data
        self.version = 0
        self._lock, self._looked = threading.RLock(), float("-inf")
        self._facts: dict[str, Facts] = {}
        self._summaries: dict[str, tuple[int, dict[str, Any]]] = {}
        self._gone: dict[str, int] = {}
        self.filling: threading.Thread | None = None

    def all(self) -> list[dict[str, Any]]:
        """Newest first."""
        self.refresh()
        return self._ordered(summary for _, summary in self._summaries.values())

    def get(self, name: str) -> dict[str, Any] | None:
        """One summary as it is now."""
        with self._lock:
            path = self.folder.get(name)
            if path is None:
                return None
            facts = self._known(name, path)
            facts.look()
            return self._summarise(name, facts, Locks(), time.time())

    def changed_since(self, version: int) -> tuple[list[dict[str, Any]], list[str]]:
        with self._lock:
            changed = [summary for at, summary in self._summaries.values() if at > version]
            return self._ordered(changed), [name for name, at in self._gone.items() if at > version]

    def refresh(self) -> int:
        """Look at the files, unless that was a moment ago."""
        with self._lock:
            if time.monotonic() - self._looked > FRESH:
                self._look()
                self._looked = time.monotonic()
            return self.version

    def _look(self) -> None:
        found, locks, now = self.folder.runs(), Locks(), time.time()
        self.version += 1
        for name in self._summaries.keys() - found.keys():
            del self._summaries[name]
            self._facts.pop(name, None)
            self._gone[name] = self.version
        began = time.monotonic()
        for name, path in self._newest_first(found):
            self._look_at(name, path, locks, now, curve=time.monotonic() - began < CURVES)
        if self.filling is None and any(facts.waits for facts in self._facts.values()):
            self.filling = threading.Thread(target=self._fill, name="headrace-histories", daemon=True)
            self.filling.start()

    def _fill(self) -> None:
        """Read the histories that a look had no time for, one at a time, so that nobody waits for them."""
        while True:
            with self._lock:
                name = next((name for name, facts in self._facts.items() if facts.waits), None)
                if name is None:
                    self.filling = None
                    return
                self.version += 1
                self._look_at(name, self._facts[name].folder, Locks(), time.time(), curve=True)
            time.sleep(0.001)

    def _newest_first(self, found: dict[str, Path]) -> list[tuple[str, Path]]:
        """So that what is on top of the screen is whole the first time."""
        if all(name in self._facts for name in found):
            return list(found.items())
        return sorted(found.items(), key=lambda item: -_written(item[1]))

    def _look_at(self, name: str, path: Path, locks: Locks, now: float, *, curve: bool) -> None:
        facts = self._known(name, path)
        changed = facts.look(curve=curve)
        before = self._summaries.get(name)
        settled = before is not None and before[1]["status"] in SETTLED
        if settled and not changed:
            return
        summary = self._summarise(name, facts, locks, now)
        if before is None or summary != before[1]:
            self._summaries[name] = (self.version, summary)
            self._gone.pop(name, None)

    def _summarise(self, name: str, facts: Facts, locks: Locks, now: float) -> dict[str, Any]:
        summary = summarise(name, facts, locks, now)
        return {**summary, "data": [_as_listed(path, self._data) for path in summary["data"]]}

    def _known(self, name: str, path: Path) -> Facts:
        facts = self._facts.get(name)
        if facts is None or facts.folder != path:
            facts = self._facts[name] = Facts(path)
        return facts

    @staticmethod
    def _ordered(summaries: Any) -> list[dict[str, Any]]:
        return sorted(summaries, key=lambda one: (-(one["started"] or 0.0), one["name"]))


@lru_cache(maxsize=4096)
def _as_listed(name: str, data: Path) -> str:
    """The name that a dataset has in the folder of datasets, if it lies there; else the one that the run gives it."""
    try:
        return Path(name).resolve().relative_to(data.resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):
        return name


def _written(path: Path) -> float:
    try:
        return (path / "events.jsonl").stat().st_mtime
    except OSError:
        return 0.0
