"""What a stream sends for each view: the difference between what is known now and what this client was told.

A client holds a few versions and places, no queue. One that reads slowly gets fewer and larger differences.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol

from headrace.dashboard.answers import news
from headrace.dashboard.context import Context
from headrace.dashboard.data_summary import PREPARATIONS
from headrace.dashboard.live import LiveRun

Message = tuple[str, dict[str, Any], str | None]  # kind, content, cursor
OVERLAP = 64 * 1024  # bytes sent again to one who does not say what it has seen; known steps are passed over there
DIAGNOSED = 5.0  # seconds
FRESH = 0.5  # seconds: those who wake together read the disk once


class View(Protocol):
    def pull(self) -> Iterator[Message]:
        """What is new, called from a thread."""


class RunsView:
    """The list of runs and datasets; what the page has is sent again only if it changed since it connected."""

    def __init__(self, context: Context, *, runs: bool = True) -> None:
        self._context, self._with_runs = context, runs
        self._version = -1  # everything once: the page may be older than this connection
        self._datasets: dict[str, dict[str, Any]] = {}

    def pull(self) -> Iterator[Message]:
        changed, gone = self._changed_runs() if self._with_runs else ([], [])
        datasets = {one["name"]: one for one in self._context.datasets()}
        fresh = [one for name, one in datasets.items() if self._datasets.get(name) != one]
        gone = [*gone, *(name for name in self._datasets if name not in datasets)]
        self._datasets = datasets
        if changed or fresh or gone:
            yield "runs", {"runs": changed, "datasets": fresh, "gone": gone}, None

    def _changed_runs(self) -> tuple[list[dict[str, Any]], list[str]]:
        runs = self._context.summaries
        version = runs.refresh()
        found = runs.changed_since(self._version)
        self._version = version
        return found


class RunView:
    """One run: rows behind the place that the client has seen."""

    def __init__(self, context: Context, name: str, cursor: str | None, *, alone: bool = True) -> None:
        self._context, self._name, self._alone = context, name, alone
        self._cursor: str | None = cursor
        self._place: int | None = None
        self._generation = -1
        self._told: dict[str, Any] = {}
        self._diagnosed = float("-inf")
        self._diagnosis: dict[str, Any] | None = None
        self._full: bool | None = None

    def pull(self) -> Iterator[Message]:
        path = self._context.folder.get(self._name)
        if path is None:
            if self._told:
                self._told = {}
                yield "reset", {"name": self._name}, None
            return
        run = self._context.library.get(path, whole=self._alone, fresh=FRESH)
        with run.lock:
            yield from self._points(run)
        if self._alone:
            yield from self._others(run)

    def _points(self, run: LiveRun) -> Iterator[Message]:
        if not self._stands(run):
            self._place, self._generation = run.state.end, run.generation
            self._told = self._context.summaries.get(self._name) or {}
            yield "reset", {"name": self._name}, None
            return
        assert self._place is not None
        found, summary = news(run, self._place), self._context.summaries.get(self._name) or {}
        self._place = run.state.end
        if found is None and summary == self._told:
            return
        self._told, cursor = summary, run.cursor()
        mix = {"mix": run.state.mix.as_dict()} if self._alone else {}
        yield "points", {"name": self._name, "cursor": cursor, "summary": summary, **(found or {}), **mix}, cursor

    def _stands(self, run: LiveRun) -> bool:
        """Whether what the client has is still a part of the run."""
        if self._place is None:
            self._generation = run.generation
            given, self._cursor = self._cursor, None
            self._place = run.seen(given) if given else max(0, run.state.end - OVERLAP)
            return self._place is not None
        return run.generation == self._generation and run.state.went_back <= self._place

    def _others(self, run: LiveRun) -> Iterator[Message]:
        if run.full != self._full:
            if run.full and self._full is not None:
                yield "full", {"name": self._name}, None
            self._full = run.full
        if time.monotonic() - self._diagnosed < DIAGNOSED:
            return
        found, self._diagnosed = self._context.diagnoses.get(run), time.monotonic()
        if found != self._diagnosis:
            self._diagnosis = found
            yield "diagnosis", {"name": self._name, "diagnosis": found}, None


class CompareView:
    def __init__(self, context: Context, names: list[str]) -> None:
        self._views = [RunView(context, name, None, alone=False) for name in names]

    def pull(self) -> Iterator[Message]:
        for view in self._views:
            yield from view.pull()


class DataView:
    """How far a dataset in preparation is."""

    def __init__(self, context: Context, name: str) -> None:
        self._context, self._name = context, name
        self._told: dict[str, Any] | None = None

    def pull(self) -> Iterator[Message]:
        folder = self._context.pages.datasets().get(self._name)
        found = PREPARATIONS.of(folder).as_dict() if folder is not None else None
        if found != self._told:
            self._told = found
            yield "prepare", {"name": self._name, "prepare": found}, None
