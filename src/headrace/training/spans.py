"""Where the time of a step goes, measured from outside the model at a cost of about a microsecond per mark.

On a CPU the clock of the host says it. On CUDA kernels run later than they are launched, so events are recorded on the
stream at the same marks and read when their interval is over; nothing waits for them inside a step.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import torch

SPANS = ("data_wait", "host_to_device", "forward", "backward", "optimizer", "sync", "checkpoint", "evaluation", "other")


Mark = tuple[str, Any]  # a name and a CUDA event


class SpanClock:
    """Time is given to the name of the mark that ends it; what is given to none falls under "other"."""

    def __init__(self, device: torch.device | None = None) -> None:
        self._device = _DeviceMarks() if device is not None and device.type == "cuda" else None
        self.restart()

    def restart(self) -> None:
        self.host = dict.fromkeys(SPANS, 0.0)
        self._began = self._last = time.perf_counter()
        if self._device:
            self._device.restart()

    def mark(self, name: str) -> float:
        """Everything since the last mark was this; gives the seconds."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self.host[name] += seconds
        if self._device:
            self._device.mark(name)
        return seconds

    def move(self, seconds: float, source: str, target: str) -> None:
        """Part of a span belongs to another, as its own clock says."""
        part = min(seconds, self.host[source])
        self.host[source] -= part
        self.host[target] += part

    @property
    def elapsed(self) -> float:
        return self._last - self._began

    def take(self) -> dict[str, float]:
        """Seconds per span since the last restart, which this does again."""
        spans = self.host
        self.restart()
        return spans

    def device_marks(self) -> list[Mark]:
        """The marks of the interval before the last restart; none where the host's clock says all."""
        return self._device.closed if self._device else []


def device_spans(marks: list[Mark]) -> dict[str, float]:
    """Seconds per span on the device, which has come past all of these marks."""
    spans = dict.fromkeys(SPANS, 0.0)
    for (_, before), (name, after) in itertools.pairwise(marks):
        spans[name] += before.elapsed_time(after) / 1000
    return spans


class _DeviceMarks:
    """CUDA events at the marks, read in pairs."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self.closed: list[Mark] = []

    def restart(self) -> None:
        self.closed = self._marks
        self._marks = [("", self._event())]

    def mark(self, name: str) -> None:
        self._marks.append((name, self._event()))

    @staticmethod
    def _event() -> Any:
        cuda: Any = torch.cuda
        event = cuda.Event(enable_timing=True)
        event.record()
        return event
