"""The live view of a run: a few lines on a terminal, a plain line every 10 s anywhere else."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import click

from headrace.cli.chart import sparkline
from headrace.cli.output import amount, can_be_live, err_console, rough
from headrace.cli.theme import STAGES, phase_style
from headrace.pipeline import Progress

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

PLAIN_EVERY = 10.0  # seconds
KEPT = 256  # points of the rate
LEAST_BAR, WIDEST = 8, 24  # columns
COURSE = " MB/s "


def show_progress(title: str) -> PlainProgress:
    """An Observer for where stderr leads. Use it as a context: the screen is left clean however the run ends."""
    return LiveProgress(title) if sys.stderr.isatty() and can_be_live(err_console()) else PlainProgress()


class Rates:
    """MB/s over the run, as the bytes of text between two moments. Bounded: every second point goes when it is full."""

    def __init__(self) -> None:
        self._points: list[tuple[float, int]] = []
        self._apart = 0.0

    def add(self, progress: Progress) -> None:
        if self._points and progress.seconds - self._points[-1][0] <= self._apart:
            return
        self._points.append((progress.seconds, progress.counts.text_bytes))
        if len(self._points) > KEPT:
            self._points = self._points[::2]
            self._apart = self._points[1][0] - self._points[0][0]

    def values(self) -> list[float]:
        return [(b[1] - a[1]) / (b[0] - a[0]) / 1e6 for a, b in itertools.pairwise(self._points)]


class PlainProgress:
    """For pipes and logs; spares importing rich (0.1 s)."""

    def __init__(self) -> None:
        self.last: Progress | None = None
        self.rates = Rates()
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
        self._take(progress)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_EVERY
            click.echo(plain_line(progress), err=True)

    def _take(self, progress: Progress) -> None:
        self.last = progress
        self.rates.add(progress)


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
        self._take(progress)

    def _render(self) -> RenderableType:
        from rich.text import Text

        if self.last is None:  # as high as the view to come, or a line of it is left behind on the screen
            return Text.assemble((self._title, "title"), "\nreading the plan and checking the tokenizer ...\n\n")
        return live_view(self._title, self.last, self.rates.values(), self._console.width)


def done_share(progress: Progress) -> float:
    return min(1.0, progress.input_bytes / max(progress.total_input_bytes, 1))


def plain_line(progress: Progress) -> str:
    """12%  task 12/34  documents 1,234  tokens 1,234,567  MB/s 12.3  rejected 0  eta 4 min"""
    counts = progress.counts
    parts = [
        f"{done_share(progress):.0%}",
        f"task {progress.tasks_done:,}/{progress.tasks:,}",
        f"documents {counts.documents:,}",
        f"tokens {counts.tokens:,}",
        f"MB/s {progress.text_mb_per_s:.1f}",
        f"rejected {counts.rejects:,}",
        f"eta {rough(progress.eta_seconds)}" if progress.eta_seconds is not None else "",
    ]
    return "  ".join(part for part in parts if part)


def live_view(title: str, progress: Progress, rates: Sequence[float] = (), width: int = 80) -> Group:
    """Four lines, none of them wider than the terminal."""
    from rich.console import Group
    from rich.text import Text

    lines = [*_progress(progress, width), _counts(progress), _stages(progress, rates, width)]
    heading = Text(title, style="title")
    for line in (heading, *lines):
        if isinstance(line, Text):
            line.no_wrap = True
            line.truncate(width, overflow="ellipsis")
    return Group(heading, *lines)


def _progress(progress: Progress, width: int) -> list[RenderableType]:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    eta = progress.eta_seconds
    words = Text.assemble(
        (f"{done_share(progress):.0%}", "number"),
        (f"  task {progress.tasks_done:,}/{progress.tasks:,}", "label"),
        (f"  eta {rough(eta)}", "number") if eta is not None else "",
        no_wrap=True,
    )
    room = width - words.cell_len - 1
    if room < LEAST_BAR:
        return [words]
    grid = Table.grid(padding=(0, 1))
    grid.add_row(ProgressBar(total=1.0, completed=done_share(progress), width=room), words)
    return [grid]


def _counts(progress: Progress) -> Text:
    from rich.text import Text

    counts = progress.counts
    return Text.assemble(
        ("MB/s ", "label"),
        (f"{progress.text_mb_per_s:.0f}", "rate"),
        ("   tokens/s ", "label"),
        (amount(progress.tokens_per_s), "rate"),
        ("   documents ", "label"),
        amount(counts.documents),
        ("   tokens ", "label"),
        amount(counts.tokens),
        ("   rejected ", "label") if counts.rejects else "",
        (f"{counts.rejects:,}", "bad") if counts.rejects else "",
    )


def _stages(progress: Progress, rates: Sequence[float], width: int) -> Text:
    """What the workers' time went into, and the course of the rate."""
    from rich.text import Text

    parts = [
        (f"{name} {progress.stage_shares.get(name, 0):.0%}  ", phase_style(phase)) for name, phase in STAGES.items()
    ]
    line = Text.assemble(("time ", "label"), *parts)
    room = width - line.cell_len - len(COURSE)
    course = sparkline(rates, min(room, WIDEST)) if room >= LEAST_BAR else ""
    return line.append(COURSE, style="label").append(course, style="curve") if course else line
