"""For torch's DataLoader and torchdata's StatefulDataLoader: a dataset whose items are whole batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from headrace.loading.adapters.layouts import LAYOUTS, Tensors, checked_layout
from headrace.loading.adapters.reader import StepReader
from headrace.loading.loader import Loader


class TorchDataset(IterableDataset[Tensors]):
    """Use as `DataLoader(TorchDataset(loader), batch_size=None)`, with any number of workers.

    Worker w of n serves the steps w, w + n and so on, and DataLoader asks its workers in turn: the order is the
    loader's. Every iteration begins at the step the loader stands at, or at `start`, and leaves the loader there. It
    ends after `steps`, or never.
    """

    def __init__(self, loader: Loader, *, layout: str = "plain", steps: int | None = None) -> None:
        self.loader, self.layout, self.steps = loader, checked_layout(layout), steps
        self.start: int | None = None

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        index, stride = (0, 1) if worker is None else (worker.id, worker.num_workers)
        start = self.loader.step if self.start is None else self.start
        end = None if self.steps is None else start + self.steps
        return StepIterator(self.loader, self.layout, step=start + index, stride=stride, end=end)


class StepIterator:
    """Every stride-th batch as tensors; StatefulDataLoader saves and restores it, one for each worker."""

    def __init__(self, loader: Loader, layout: str, *, step: int, stride: int, end: int | None) -> None:
        self._reader, self._layout = StepReader(loader), LAYOUTS[layout]
        self._step, self._stride, self._end = step, stride, end

    def __iter__(self) -> Iterator[Tensors]:
        return self

    def __next__(self) -> Tensors:
        if self._end is not None and self._step >= self._end:
            raise StopIteration
        tensors = self._layout(self._reader.read(self._step))
        self._step += self._stride
        return tensors

    def state_dict(self) -> dict[str, Any]:
        """The loader's, before the next step of this worker."""
        return {"loader": self._reader.state_dict(self._step), "end": self._end}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._reader.load_state_dict(state["loader"])
        self._step, self._end = state["loader"]["step"], state["end"]
