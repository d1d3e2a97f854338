"""Library: the runs that are being looked at, the newest ones kept, in bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from headrace.dashboard.live import LiveRun

MOST_BYTES = 384 * 1024 * 1024  # of columns: three or four runs of a million rows
MOST_RUNS = 64


class Library:
    """Opens runs on demand and forgets those that nobody asked for longest."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._lock = most_bytes, threading.Lock()
        self._runs: OrderedDict[Path, LiveRun] = OrderedDict()
        self._queue: list[LiveRun] = []
        self._thread: threading.Thread | None = None

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in list(self._runs.values()))

    def get(self, folder: Path, *, whole: bool = False, fresh: float = 0.0) -> LiveRun:
        """The run as it stands now, or stood `fresh` seconds ago.

        `whole` asks for full resolution, which comes later if the run is long.
        """
        with self._lock:
            run = self._runs.get(folder)
        if run is None:
            made = LiveRun(folder)
            with self._lock:
                run = self._runs.setdefault(folder, made)
        with self._lock:
            self._runs.move_to_end(folder)
            self._forget(keep=run)
        run.refresh(fresh)
        if whole and not run.full:
            self._index(run)
        return run

    def _forget(self, keep: LiveRun, needed: int = 0) -> None:
        """Let the oldest go until there is room."""
        for folder, run in list(self._runs.items()):
            if self.nbytes + needed <= self._most and len(self._runs) <= MOST_RUNS:
                return
            if run is not keep and not run.indexing:
                del self._runs[folder]

    def _index(self, run: LiveRun) -> None:
        """One run after the other, in one thread: two at once would only be slower, and starve the server."""
        with self._lock:
            self._forget(keep=run, needed=run.needs)
            if run.indexing or run.needs > self._most:
                return
            run.indexing = True
            self._queue.append(run)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="headrace-index", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._thread = None
                    return
                run = self._queue.pop()  # the one asked for last is the one on the screen
            run.index()
