"""How busy the machine's cores are, and how much of that is this process; from /proc, where there is one."""

from __future__ import annotations

import os
from time import perf_counter, process_time
from typing import Any

IDLE = (3, 4)  # idle and iowait, among the figures of a line of /proc/stat


class Load:
    """Two readings are kept: the first after the warm-up, and the last."""

    def __init__(self) -> None:
        self.first: dict[str, Any] | None = None
        self.last: dict[str, Any] | None = None

    def read(self, warm: bool) -> None:
        reading = {"at": perf_counter(), "own": process_time(), "cores": busy_cores()}
        if warm and self.first is None:
            self.first = reading
        self.last = reading

    def as_dict(self) -> dict[str, Any] | None:
        if self.first is None or self.last is None or self.last["at"] <= self.first["at"]:
            return None
        seconds = self.last["at"] - self.first["at"]
        pairs = zip(self.first["cores"], self.last["cores"], strict=False)
        return {
            "seconds": seconds,
            "own": (self.last["own"] - self.first["own"]) / seconds,
            "cores": [min(1.0, (after - before) / seconds) for before, after in pairs],
        }


def busy_cores() -> list[float]:
    """Seconds that each core has been busy since the machine started; none if that is not known."""
    try:
        tick = os.sysconf("SC_CLK_TCK")
        with open("/proc/stat", "rb") as file:
            lines = [line.split() for line in file if line[:3] == b"cpu" and line[3:4].isdigit()]
        return [busy_of([int(value) for value in line[1:9]]) / tick for line in lines]
    except (OSError, ValueError, AttributeError):
        return []


def busy_of(figures: list[int]) -> int:
    return sum(value for index, value in enumerate(figures) if index not in IDLE)
