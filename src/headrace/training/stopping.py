"""Ctrl-C and SIGTERM end a run after the step it is in; a second one ends it at once."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any


class StopRequest:
    """Within it, the first signal is only noted.

    Those that follow within `settle` seconds are the same request: torchrun passes on what the terminal sends too.
    """

    def __init__(self, *, settle: float = 0.0) -> None:
        self._settle, self._noted = settle, 0.0
        self.signal: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.signal is not None

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal, self._noted = signal.Signals(number), time.monotonic()
        elif time.monotonic() - self._noted >= self._settle:
            self.__exit__()
            raise KeyboardInterrupt
