"""Exclusive time per phase: what a phase takes inside another is not counted twice."""

from __future__ import annotations

from collections import defaultdict
from threading import get_ident
from time import perf_counter
from typing import Any

# phase, what was called, file, line, function, the library's line in between
Key = tuple[str, str, str, int, str, str]
OWN = "probe"  # time that watching itself took, where it is worth counting: no phase of the step


class Clock:
    """Of the thread that made it; other threads are only added up."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.thread = get_ident()
        self.stack = ["python"]
        self.background: dict[str, float] = defaultdict(float)
        self.last = perf_counter()
        self._clear()

    def _clear(self) -> None:
        self.times: dict[str, float] = defaultdict(float)
        self.sites: dict[Key, list[float]] = {}  # calls, seconds, amount (texts, bytes)

    def enter(self, phase: str) -> float:
        """Begin a phase; what it gives back is for `leave`."""
        now = perf_counter()
        times = self.times
        times[self.stack[-1]] += now - self.last
        self.last = now
        self.stack.append(phase)
        return times[phase]

    def leave(self, before: float) -> float:
        """End the phase begun last; the seconds that were its own."""
        now = perf_counter()
        phase = self.stack.pop()
        own = self.times[phase] + now - self.last
        self.times[phase] = own
        self.last = now
        return max(0.0, own - before)

    def turn(self, phase: str) -> None:
        """From now on the phase begun last is another one."""
        now = perf_counter()
        self.times[self.stack[-1]] += now - self.last
        self.last = now
        self.stack[-1] = phase

    def within(self, phase: str) -> bool:
        """Whether it goes on now, and no loop of the script's is inside it."""
        for entry in reversed(self.stack):
            if entry == phase or entry == "python":
                return entry == phase
        return False

    def move(self, seconds: float, phase: str) -> None:
        """What just passed belonged to that phase: known only afterwards, as with copies between devices."""
        self.times[self.stack[-1]] -= seconds
        self.times[phase] += seconds

    def add(self, key: Key, seconds: float, amount: float = 0.0) -> None:
        entry = self.sites.get(key)
        if entry is None:
            self.sites[key] = [1.0, seconds, amount]
        else:
            entry[0] += 1.0
            entry[1] += seconds
            entry[2] += amount

    def take(self) -> tuple[dict[str, float], dict[Key, list[float]]]:
        """Times and lines since the last take."""
        now = perf_counter()
        self.times[self.stack[-1]] += now - self.last
        self.last = now
        taken = dict(self.times), self.sites
        self._clear()
        return taken

    def peek(self) -> dict[Key, list[Any]]:
        return dict(self.sites)
