"""LiveRun: one run that somebody looks at, at hand at once and soon at full resolution.

A short log is read whole, 2 MB in about 30 ms. A long one is shown from its history and its end, and followed from
there, while a thread reads it from the beginning. Places in the file are the same in both, so one takes the place of
the other without anybody noticing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from headrace.dashboard.follow import SLICE, Follower, Replaced, identity_of, read_head
from headrace.dashboard.preview import EVENTS, preview
from headrace.dashboard.state import RunState

WHOLE = 2 * 1024 * 1024  # bytes that are read at once
RESTS = 0.3  # of the time that a slice took, so that requests get their turn
BYTES_PER_BYTE = 0.25  # of memory for one of a file, at most: a line of 550 bytes becomes 90, and 16 of reduced ones


class LiveRun:
    """All methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.events = folder, folder / EVENTS
        self.lock = threading.RLock()
        self._looked = float("-inf")
        self.generation = 0  # another one when the file was replaced
        self._open()

    def _open(self) -> None:
        self.full, self.indexing = True, False
        self.state, self._follower = RunState(), Follower(self.events)
        try:
            size = self.events.stat().st_size
        except OSError:
            return
        if size > WHOLE:
            self.full = False
            self.state = preview(self.folder)
            self._follower = Follower(self.events, self.state.end)

    @property
    def nbytes(self) -> int:
        return self.state.nbytes

    @property
    def needs(self) -> int:
        """Bytes that full resolution takes."""
        return int(BYTES_PER_BYTE * self._follower.offset)

    def refresh(self, fresh: float = 0.0) -> None:
        """Take in what is new, unless that was done less than `fresh` seconds ago."""
        with self.lock:
            if time.monotonic() - self._looked < fresh:
                return
            try:
                self._take_all()
            except Replaced:
                self.generation += 1
                self._open()
                with contextlib.suppress(Replaced):  # again, within a moment: the next look finds it
                    self._take_all()
            self._looked = time.monotonic()

    def _take_all(self) -> None:
        while _advance(self._follower, self.state):
            pass

    def cursor(self) -> str:
        """How much of which file has been seen; good for another server, too."""
        return f"{self._identity():x}.{self.state.end}"

    def seen(self, cursor: str | None) -> int | None:
        """The place that a cursor stands for; None if it is of another file, or the run went back behind it."""
        try:
            identity, _, offset = (cursor or "").partition(".")
            place = int(offset)
            if int(identity, 16) != self._identity() or not 0 <= place <= self.state.end:
                return None
        except ValueError:
            return None
        return None if self.state.went_back > place else place

    def _identity(self) -> int:
        if self._follower.identity is None:
            try:
                self._follower.identity = identity_of(read_head(self.events, 4096))
            except OSError:
                pass
        return self._follower.identity or 0

    def index(self) -> None:
        """Read the file from its beginning, in slices; runs in a thread of its own."""
        generation = self.generation
        state, follower = RunState(), Follower(self.events)
        try:
            while not self._swap(state, follower, generation):
                began = time.perf_counter()
                _advance(follower, state)
                state.levels.extend()
                time.sleep(RESTS * (time.perf_counter() - began))
        except (Replaced, OSError):
            with self.lock:
                self.indexing = False

    def _swap(self, state: RunState, follower: Follower, generation: int) -> bool:
        """Once it has come to the same place, the full one is the one; true also if there is nothing to do any more."""
        with self.lock:
            if generation != self.generation:
                self.indexing = False
                return True
            if follower.offset < self.state.end - SLICE:
                return False
            while follower.offset < self.state.end and _advance(follower, state):
                pass
            self.state, self._follower = state, follower
            self.full, self.indexing = True, False
            return True


def _advance(follower: Follower, state: RunState) -> bool:
    at = follower.offset
    chunk = follower.read()
    if chunk:
        state.take(chunk, at)
    return bool(chunk)
