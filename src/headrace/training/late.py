"""Numbers that stay on the device and are read one interval late, when they have long been there: no step waits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Interval(NamedTuple):
    """What the host knew of some steps when it launched them; the numbers come later."""

    facts: dict[str, Any]
    values: Tensor  # [steps, columns], on the host
    arrived: Any  # a CUDA event, or None
    names: tuple[str, ...] = ()  # of the last columns


class LateReader:
    """Keeps a row of numbers per step on the device, in two tables that take turns.

    Beside the numbers that every step has there may be named ones. The first step of an interval says which.
    """

    def __init__(
        self, rows: int, columns: int, device: torch.device, *, average: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self._average = average  # over ranks, once per interval
        self._device, self._on_cuda = device, device.type == "cuda"
        self._rows, self._columns = rows, columns
        self._missing = torch.full((), math.nan, device=device)
        self._row, self._names = 0, tuple[str, ...]()
        self._tables = self._new_tables()
        self._waiting: Interval | None = None

    def __len__(self) -> int:
        return self._row

    def add(self, /, *values: Tensor, **named: Tensor) -> None:
        """The numbers of one step, as scalars on the device; a named one that is not there this time is NaN."""
        if self._row == 0 and tuple(named) != self._names:
            self._names = tuple(named)
            self._tables = self._new_tables()
        row = [*values, *(named.get(name, self._missing) for name in self._names)]
        self._tables[0][self._row].copy_(torch.stack([value.detach().float().reshape(()) for value in row]))
        self._row += 1

    def close(self, facts: dict[str, Any]) -> Interval | None:
        """End an interval: its numbers begin their way to the host, and those of the interval before are given."""
        finished, rows = self.flush(), self._tables[0][: self._row]
        if self._average is not None:
            rows = self._average(rows)
        if self._on_cuda:
            host = torch.empty(rows.shape, pin_memory=True)
            host.copy_(rows, non_blocking=True)
            cuda: Any = torch.cuda
            event = cuda.Event()
            event.record()
            self._waiting = Interval(facts, host, event, self._names)
        else:
            self._waiting = Interval(facts, rows.clone(), None, self._names)
        self._tables.reverse()
        self._row = 0
        return finished

    def flush(self) -> Interval | None:
        """The interval that is still on its way, waited for."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.arrived is not None:
            waiting.arrived.synchronize()
        return waiting

    def _new_tables(self) -> list[Tensor]:
        columns = self._columns + len(self._names)
        return [torch.zeros(self._rows, columns, device=self._device) for _ in range(2)]


def column_means(interval: Interval) -> dict[str, float]:
    """The named numbers, each as the mean of the steps that have it; NaN if none has."""
    named = interval.values[:, -len(interval.names) :] if interval.names else interval.values[:, :0]
    return dict(zip(interval.names, named.nanmean(0).tolist(), strict=True))
