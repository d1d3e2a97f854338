"""Batches by step: one after the other through the loader's thread, any others directly."""

from __future__ import annotations

import copy
import os

from headrace.loading.feed import Batch
from headrace.loading.loader import Loader


class StepReader:
    """Reads with a copy of the loader, which itself stays where it is. A batch is valid until the next is read."""

    def __init__(self, loader: Loader) -> None:
        self._loader, self._last, self._process = copy.copy(loader), -2, os.getpid()

    def read(self, step: int) -> Batch:
        self._leave_the_parent()
        follows, self._last = step == self._last + 1, step
        if not follows:
            return self._loader.batch_at(step)
        if self._loader.step != step:
            self._loader.load_state_dict({**self._loader.state_dict(), "step": step})
        return next(self._loader)

    def _leave_the_parent(self) -> None:
        """A thread does not live on in a forked process, and its locks may be held for ever."""
        if self._process != os.getpid():
            self._loader, self._process = copy.copy(self._loader), os.getpid()
