"""Batches by step: one after the other through the loader's thread, any others directly."""

from __future__ import annotations

import os
import pickle
from typing import Any

from headrace.loading.feed import Batch
from headrace.loading.loader import Loader


class StepReader:
    """Reads with a loader of its own, so that the given one stays where it is. A batch is valid until the next.

    Only prepared data can be read so: the loader refuses to give any step of live text, and says what to do.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader, self._last, self._process = _another(loader), -2, os.getpid()

    def read(self, step: int) -> Batch:
        self._leave_the_parent()
        follows, self._last = step == self._last + 1, step
        if not follows:
            return self._loader.batch_at(step)
        if self._loader.step != step:
            self._loader.load_state_dict(self._loader.state_dict(step))
        return next(self._loader)

    def state_dict(self, step: int) -> dict[str, Any]:
        """The loader's state before this step: 25 us with 300 shards, little enough to ask at every batch."""
        return self._loader.state_dict(step)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Check the state and take over its mixture; what is read next is still up to the caller."""
        self._loader.load_state_dict(state)

    def _leave_the_parent(self) -> None:
        """A thread does not live on in a forked process, and its locks may be held for ever."""
        if self._process != os.getpid():
            self._loader, self._process = _another(self._loader), os.getpid()


def _another(loader: Loader) -> Loader:
    """The same loader once more, by the way that it goes to other processes: 80 us, 370 with 300 shards."""
    another: Loader = pickle.loads(pickle.dumps(loader))
    return another
