"""Feed: the thread that gathers batches ahead, and the buffers that go round between it and the caller."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from headrace.loading.boundaries import Boundaries
from headrace.loading.gather import Gatherer


class Batch(NamedTuple):
    """Valid until the next one is asked for: its memory is used again. Copy what you keep."""

    tokens: NDArray[Any]  # [B, L + 1]
    step: int
    boundaries: Boundaries | None = None

    @property
    def input_ids(self) -> NDArray[Any]:
        return self.tokens[:, :-1]

    @property
    def targets(self) -> NDArray[Any]:
        return self.tokens[:, 1:]


class Feed:
    """The thread that fills buffers, and the two queues between which they go round."""

    def __init__(
        self, gatherer: Gatherer, buffers: Sequence[NDArray[Any]], step: int, *, with_boundaries: bool
    ) -> None:
        self._gatherer, self._with_boundaries = gatherer, with_boundaries
        self._free: queue.SimpleQueue[NDArray[Any] | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[Batch | BaseException] = queue.SimpleQueue()
        self._lent: NDArray[Any] | None = None
        for buffer in buffers:  # one more than are filled ahead: the one that the caller holds
            self._free.put(buffer)
        self._thread = threading.Thread(target=self._fill, args=(step,), name="headrace-loader", daemon=True)
        self._thread.start()

    def next(self) -> Batch:
        if self._lent is not None:
            self._free.put(self._lent)
            self._lent = None
        batch = self._full.get()
        if isinstance(batch, BaseException):
            raise batch
        self._lent = batch.tokens
        return batch

    def stop(self) -> None:
        self._free.put(None)

    def _fill(self, step: int) -> None:
        try:
            for number, rows in enumerate(self._gatherer.batches(step), start=step):
                buffer = self._free.get()
                if buffer is None:
                    return
                self._gatherer.copy(rows, buffer)
                found = self._gatherer.boundaries(rows) if self._with_boundaries else None
                self._full.put(Batch(buffer, number, found))
        except BaseException as error:  # the caller's next() raises it
            self._full.put(error)
