"""How long a training loop waited for its batches, for people and for the event log."""

from __future__ import annotations

import time
from typing import NamedTuple

from headrace.telemetry import EventLog

EVERY = 1.0  # seconds between two events: a line for each batch would cost more than the batch


class WaitStatistics(NamedTuple):
    batches: int
    wait_seconds: float
    max_wait_seconds: float


class Waits:
    """Adds up waits; writes an event "loader" about once a second when there is a log."""

    def __init__(self, events: EventLog | None, *, tokens: int) -> None:
        self._batches, self._seconds, self._longest = 0, 0.0, 0.0
        self._events, self._tokens = events, tokens
        self._since = WaitStatistics(0, 0.0, 0.0)
        self._written = time.perf_counter()

    @property
    def statistics(self) -> WaitStatistics:
        return WaitStatistics(self._batches, self._seconds, self._longest)

    def add(self, seconds: float) -> None:
        self._batches += 1
        self._seconds += seconds
        if seconds > self._longest:
            self._longest = seconds
        if self._events is not None:
            self._since = _plus(self._since, seconds)
            self._write_now_and_then(self._events)

    def _write_now_and_then(self, events: EventLog) -> None:
        now = time.perf_counter()
        if now - self._written < EVERY:
            return
        batches, waited, longest = self._since
        events.write(
            "loader",
            batches=batches,
            tokens=batches * self._tokens,
            seconds=round(now - self._written, 6),
            data_wait=round(waited, 6),
            max_wait=round(longest, 6),
        )
        self._since, self._written = WaitStatistics(0, 0.0, 0.0), now


def _plus(sum_: WaitStatistics, seconds: float) -> WaitStatistics:
    return WaitStatistics(sum_[0] + 1, sum_[1] + seconds, max(sum_[2], seconds))
