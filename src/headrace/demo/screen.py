"""Screen: what the story wants shown. The command line has one for terminals and pipes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, Any, Protocol

from headrace.pipeline import Observer
from headrace.storage import TokenStore

Listener = Callable[[dict[str, Any]], None]


class Screen(Protocol):
    def stage(self, number: int, title: str, command: list[str]) -> None:
        """A stage begins; the command is what a person would type for it."""

    def done(self, found: str, seconds: float) -> None:
        """It has ended, with this."""

    def preparing(self, title: str) -> AbstractContextManager[Observer]: ...

    def look(self, store: TokenStore) -> None:
        """Some of the prepared text."""

    def script(self) -> AbstractContextManager[IO[Any]]:
        """A file for what a script prints, which is shown as it comes."""

    def training(self) -> AbstractContextManager[Listener]:
        """A listener for a Trainer's events."""
