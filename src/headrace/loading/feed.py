"""Feed: the thread that gathers batches ahead, and the buffers that go round between it and the caller."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from headrace.loading.boundaries import Boundaries
from headrace.loading.gather import Gatherer

# A caller that is back sooner than this gathers for itself: handing a batch from thread to thread takes about 50 us,
# more than the gathering. Any real training step is longer, and finds its batch filled.
PATIENCE = 1e-3


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
    """Batches in order. Whoever holds the turn gathers the next: the thread, or a caller that finds none filled."""

    def __init__(
        self, gatherer: Gatherer, buffers: Sequence[NDArray[Any]], step: int, *, with_boundaries: bool
    ) -> None:
        self._gatherer, self._with_boundaries = gatherer, with_boundaries
        self._rows, self._step = gatherer.batches(step), step
        self._free: queue.SimpleQueue[NDArray[Any] | None] = queue.SimpleQueue()
        self._full: deque[Batch | BaseException] = deque()
        self._turn = threading.Lock()
        self._spare: NDArray[Any] | None = None  # given back last, so still in the cache: for a caller who gathers
        self._taken = 0  # batches given out; tells the thread that the caller has been back
        self._stopped = False
        for buffer in buffers:
            self._free.put(buffer)
        self._thread = threading.Thread(target=self._run, name="headrace-loader", daemon=True)
        self._thread.start()

    def take(self) -> Batch:
        """The next batch; its buffer is the caller's until it is given back."""
        self._taken += 1
        if not self._full:
            with self._turn:
                if not self._full:
                    self._fill_one(self._buffer())
        batch = self._full.popleft()
        if isinstance(batch, BaseException):
            raise batch
        return batch

    def give_back(self, batch: Batch) -> None:
        if self._spare is None:
            self._spare = batch.tokens
        else:
            self._free.put(batch.tokens)

    def stop(self) -> None:
        self._stopped = True
        self._free.put(None)

    def _buffer(self) -> NDArray[Any]:
        """A free one: there is one more than the thread, the filled batches and the caller hold."""
        buffer, self._spare = self._spare, None
        if buffer is None:
            buffer = self._free.get_nowait()
        assert buffer is not None, "the feed was stopped"
        return buffer

    def _run(self) -> None:
        """Fill every buffer that comes free, as soon as the caller is away."""
        seen = 0
        while (buffer := self._free.get()) is not None:
            while self._taken != seen:
                seen = self._taken
                time.sleep(PATIENCE)
            with self._turn:
                if self._stopped:
                    return
                self._fill_one(buffer)

    def _fill_one(self, buffer: NDArray[Any]) -> None:
        try:
            rows = next(self._rows)
            self._gatherer.copy(rows, buffer)
            found = self._gatherer.boundaries(rows) if self._with_boundaries else None
            self._full.append(Batch(buffer, self._step, found))
            self._step += 1
        except BaseException as error:  # the caller's take() raises it
            self._stopped = True
            self._full.append(error)
