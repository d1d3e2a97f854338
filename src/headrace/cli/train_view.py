"""TrainView: a run as it goes on, live on a terminal, a plain line every 10 s anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.cli.live import PLAIN_EVERY
from headrace.cli.output import can_be_live, err_console
from headrace.cli.train_panels import live_view, plain_line, printable
from headrace.cli.train_status import RunStatus

if TYPE_CHECKING:
    from rich.console import Console, Group

RENDERS_PER_SECOND = 4


class TrainView:
    """A listener for a Trainer. Use it as a context: the screen is left clean however the run ends.

    The training thread only puts events away; a thread of the view draws. Messages stay on the screen, above it.
    """

    def __init__(
        self, console: Console | None = None, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or err_console()
        self._quiet, self._clock = quiet, clock
        self.status = RunStatus(clock)
        self._lock = threading.Lock()
        self._next = clock() + PLAIN_EVERY
        self._said: float | None = None
        self._drawn: tuple[Any, Group] | None = None
        self._version = 0
        self._live: Any = None
        if not quiet and can_be_live(self._console):
            self._live = self._new_live()

    def __enter__(self) -> TrainView:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Mapping[str, Any]) -> None:
        with self._lock:
            self.status.add(event)
            self._version += 1
        if event.get("kind") == "message":
            self.say(str(event.get("text", "")))
        elif self._live is None:
            self._print_now_and_then(event)

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._quiet:
            for line in text.splitlines():
                self._print(printable(line))

    def _new_live(self) -> Any:
        from rich.live import Live

        return Live(
            console=self._console,
            refresh_per_second=RENDERS_PER_SECOND,
            transient=True,
            get_renderable=self._render,
            vertical_overflow="crop",
        )

    def _render(self) -> Group:
        """Drawn anew when something changed, and once a second for the time that is left."""
        console = self._console
        size = (max(1, console.size.width), console.size.height)
        with self._lock:
            key = (self._version, size, int(self._clock()))
            if self._drawn is None or self._drawn[0] != key:
                drawn = live_view(self.status, width=size[0], height=size[1], colour=not console.no_color)
                self._drawn = (key, drawn)
            return self._drawn[1]

    def _print_now_and_then(self, event: Mapping[str, Any]) -> None:
        kind, now = event.get("kind"), self._clock()
        if kind not in ("step", "eval", "end") or self._quiet:
            return
        if kind == "step" and now < self._next:
            return
        if kind == "end" and self._said == self.status.step:
            return
        self._next, self._said = now + PLAIN_EVERY, self.status.step
        self._print(plain_line(self.status))

    def _print(self, line: str) -> None:
        from rich.text import Text

        if self._console.options.ascii_only:
            line = line.encode("ascii", "replace").decode()
        self._console.print(Text(line), soft_wrap=True)
