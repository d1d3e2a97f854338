"""Numbers that stay on the device and are read one interval late, when they have long been there: no step waits."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Interval(NamedTuple):
    """What the host knew of some steps when it launched them; the numbers come later."""

    facts: dict[str, Any]
    values: Tensor  # [steps, columns], on the host
    arrived: Any  # a CUDA event, or None


class LateReader:
    """Keeps a row of numbers per step on the device, in two tables that take turns."""

    def __init__(self, rows: int, columns: int, device: torch.device) -> None:
        self._device, self._on_cuda = device, device.type == "cuda"
        self._tables = [torch.zeros(rows, columns, device=device) for _ in range(2)]
        self._row = 0
        self._waiting: Interval | None = None

    def __len__(self) -> int:
        return self._row

    def add(self, *values: Tensor) -> None:
        """The numbers of one step, as scalars on the device."""
        self._tables[0][self._row].copy_(torch.stack([value.detach().float().reshape(()) for value in values]))
        self._row += 1

    def close(self, facts: dict[str, Any]) -> Interval | None:
        """End an interval: its numbers begin their way to the host, and those of the interval before are given."""
        finished, rows = self.flush(), self._tables[0][: self._row]
        if self._on_cuda:
            host = torch.empty(rows.shape, pin_memory=True)
            host.copy_(rows, non_blocking=True)
            cuda: Any = torch.cuda
            event = cuda.Event()
            event.record()
            self._waiting = Interval(facts, host, event)
        else:
            self._waiting = Interval(facts, rows.clone(), None)
        self._tables.reverse()
        self._row = 0
        return finished

    def flush(self) -> Interval | None:
        """The interval that is still on its way, waited for."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.arrived is not None:
            waiting.arrived.synchronize()
        return waiting
