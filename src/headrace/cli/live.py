"""The live view of a run: a few lines on a terminal, a plain line every 10 s anywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

from headrace.cli.output import amount, duration, err_console
from headrace.pipeline import Progress

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

PLAIN_EVERY = 10.0  # seconds
STAGES = {"read": "cyan", "tokenize": "green", "verify": "magenta", "write": "yellow"}


def show_progress(title: str) -> PlainProgress:
    """An Observer for where stderr leads. Use it as a context: the screen is left clean however the run ends."""
    return LiveProgress(title) if sys.stderr.isatty() else PlainProgress()


class PlainProgress:
    """For pipes and logs; spares importing rich (0.1 s)."""

    def __init__(self) -> None:
        self.last: Progress | None = None
        self._next = time.monotonic() + PLAIN_EVERY

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def notice(self, text: str) -> None:
        click.echo(text, err=True)

    def progress(self, progress: Progress) -> None:
        self.last = progress
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_EVERY
            click.echo(plain_line(progress), err=True)


class LiveProgress(PlainProgress):
    """For terminals."""

    def __init__(self, title: str) -> None:
        from rich.live import Live

        super().__init__()
        self._title = title
        self._console = err_console()
        self._live = Live(console=self._console, refresh_per_second=8, transient=True, get_renderable=self._render)

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def notice(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(text))

    def progress(self, progress: Progress) -> None:
        self.last = progress

    def _render(self) -> RenderableType:
        from rich.text import Text

        if self.last is None:  # as high as the view to come, or a line of it is left behind on the screen
            return Text.assemble((self._title, "bold"), "\nreading the plan and checking the tokenizer ...\n\n")
        return live_view(self._title, self.last)


def done_share(progress: Progress) -> float:
    return min(1.0, progress.input_bytes / max(progress.total_input_bytes, 1))


def plain_line(progress: Progress) -> str:
    counts = progress.counts
    eta = f", {duration(progress.eta_seconds)} left" if progress.eta_seconds is not None else ""
    return (
        f"{done_share(progress):.0%} task {progress.tasks_done}/{progress.tasks}, {counts.documents:,} documents, "
        f"{counts.tokens:,} tokens, {progress.text_mb_per_s:.1f} MB/s, {counts.rejects:,} rejected{eta}"
    )


def live_view(title: str, progress: Progress) -> Group:
    """At most 80 columns wide."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    counts = progress.counts
    head = Table.grid(padding=(0, 1))
    eta = f"{duration(progress.eta_seconds)} left" if progress.eta_seconds is not None else ""
    head.add_row(
        ProgressBar(total=1.0, completed=done_share(progress), width=36),
        Text(f"{done_share(progress):4.0%}", style="bold"),
        Text(f"task {progress.tasks_done}/{progress.tasks}", style="dim"),
        Text(eta, style="bold"),
    )
    speed = Text.assemble(
        (f"{progress.text_mb_per_s:.0f} MB/s", "bold green"),
        f"  {amount(progress.tokens_per_s)} tokens/s",
        f"   {amount(counts.documents)} documents  {amount(counts.tokens)} tokens",
        (f"  {counts.rejects:,} rejected", "red") if counts.rejects else "",
    )
    return Group(Text(title, style="bold"), head, speed, stage_line(progress))


def stage_line(progress: Progress) -> RenderableType:
    from rich.text import Text

    parts = [(f"{name} {progress.stage_shares.get(name, 0):.0%}  ", color) for name, color in STAGES.items()]
    return Text.assemble(("time: ", "dim"), *parts)
