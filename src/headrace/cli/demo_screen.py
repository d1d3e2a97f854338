"""How the demo looks while it runs: a line for each stage with its command, and below it what happens, live."""

from __future__ import annotations

import os
import shlex
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from headrace.cli.live import PLAIN_EVERY, show_progress
from headrace.cli.output import duration, err_console, out_console
from headrace.errors import MissingDependency

if TYPE_CHECKING:
    from headrace.cli.live import PlainProgress
    from headrace.cli.train_view import TrainView
    from headrace.storage import TokenStore

LOOK_AT, LOOK_TOKENS = 1000, 64  # a chunk that is somewhere in the middle of the text
INDENT = "   "


def need_torch() -> None:
    """Said before anything is done; preparing alone works without."""
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise MissingDependency(package, "train", "The demo trains two models (not with --prepare-only), which")


class TerminalScreen:
    """Stages on stdout, or on stderr if stdout is for JSON. Live views are on stderr and leave nothing behind."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = err_console() if quiet else out_console()

    def stage(self, number: int, title: str, command: list[str]) -> None:
        from rich.text import Text

        console = self._console
        first, *rest = command_lines(command, max(console.width, 40) - len(INDENT) - 2)
        console.print(Text(f"{number}. {title}", style="bold cyan"), soft_wrap=True)
        for start, line in ((f"{INDENT}$ ", first), *((f"{INDENT}  ", line) for line in rest)):
            console.print(Text(f"{start}{line}", style="dim"), soft_wrap=True)

    def done(self, found: str, seconds: float) -> None:
        from rich.text import Text

        console, taken = self._console, duration(seconds)
        *lines, last = textwrap.wrap(f"{found}  {taken}", max(console.width, 40) - len(INDENT)) or [taken]
        for line in lines:
            console.print(Text(f"{INDENT}{line}"), soft_wrap=True)
        console.print(Text.assemble(INDENT, last.removesuffix(taken), (taken, "dim")), soft_wrap=True)

    def preparing(self, title: str) -> AbstractContextManager[PlainProgress]:
        return show_progress(title)

    def look(self, store: TokenStore) -> None:
        """A few lines out of the middle, as they come back from the disk."""
        from rich.text import Text

        from headrace.cli.train_panels import printable

        at = min(LOOK_AT * LOOK_TOKENS, max(0, store.total_tokens - LOOK_TOKENS))
        text = store.decode(store.tokens(at, at + LOOK_TOKENS)).expandtabs(4)
        width = max(self._console.width, 40) - len(INDENT) - 2
        for line in text.splitlines()[1:-1]:  # whole ones
            self._console.print(Text(f"{INDENT}| {printable(line)[:width]}", style="green"), soft_wrap=True)

    def script(self) -> AbstractContextManager[IO[Any]]:
        return script_view(quiet=self._quiet)

    def training(self) -> TrainView:
        from headrace.cli.train_view import TrainView

        return TrainView(quiet=self._quiet)


def command_lines(command: Sequence[str], width: int) -> list[str]:
    """A command in lines that fit, each but the last with a backslash, so that it can be copied."""
    first, *parts = _parts([shlex.quote(word) for word in command])
    lines = [first]
    for part in parts:
        if len(lines[-1]) + 1 + len(part) <= width - 2:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"  {part}")
    return lines


def _parts(words: list[str]) -> list[str]:
    """Words, but an option together with its value."""
    parts: list[str] = []
    for word in words:
        before = parts[-1] if parts else ""
        if before.startswith("--") and before != "--" and " " not in before and not word.startswith("--"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts


@contextmanager
def script_view(*, quiet: bool) -> Iterator[IO[Any]]:
    """A pipe for a script's stdout; its newest line is shown live on a terminal, every 10 s anywhere else."""
    read_end, write_end = os.pipe()
    view = _ScriptView(quiet=quiet)
    thread = threading.Thread(target=view.follow, args=(read_end,), daemon=True)
    thread.start()
    with os.fdopen(write_end, "w") as file, view:
        yield file
    thread.join()


class _ScriptView:
    def __init__(self, *, quiet: bool) -> None:
        self._console = err_console()
        self._quiet, self._began, self._newest = quiet, time.monotonic(), "starting Python and torch ..."
        self._live: Any = None
        if self._console.is_terminal and not self._console.is_dumb_terminal and not quiet:
            from rich.live import Live

            self._live = Live(console=self._console, refresh_per_second=8, transient=True, get_renderable=self._render)

    def __enter__(self) -> _ScriptView:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def follow(self, read_end: int) -> None:
        due = time.monotonic() + PLAIN_EVERY
        with os.fdopen(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._newest = line.strip()
                if self._live is None and not self._quiet and time.monotonic() >= due:
                    due = time.monotonic() + PLAIN_EVERY
                    self._console.print(f"{INDENT}{self._newest}", markup=False, soft_wrap=True)

    def _render(self) -> Any:
        from rich.text import Text

        passed = duration(time.monotonic() - self._began)
        return Text.assemble(INDENT, (passed.rjust(6), "bold"), "  ", self._newest, overflow="ellipsis", no_wrap=True)
