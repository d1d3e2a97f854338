"""The end of the demo on a terminal: rates before and after, both trees, the loss, some code, what to run next."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.chart import draw_chart
from headrace.cli.output import amount, duration, out_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from headrace.demo.findings import Findings, Way

BAR, CHART_ROWS, CHART_WIDTH = 24, 8, 76
SAMPLE_LINES = 12


def show_summary(found: Findings, console: Console | None = None) -> None:
    from rich.rule import Rule
    from rich.text import Text

    from headrace.demo.page import headline

    console = console or out_console()
    width = console.width if console.is_terminal else 80
    console.print()
    console.print(Rule(headline(found), align="left"), width=min(width, 120))
    for part in (rates(found), trees(found, width), losses(found, width), sample(found, width), ending(found)):
        for line in part:
            console.print(line, soft_wrap=True)
        console.print()
    load, cores = found.machine.get("load_at_start"), found.machine.get("cores") or 1
    if load is not None and load >= 0.5 * cores:
        told = f"Other programs were at work (load {load:.1f} on {cores} cores): an idle machine is faster."
        console.print(Text(told, style="yellow"))


def rates(found: Findings) -> list[Text]:
    from rich.text import Text

    ways = [found.slow, *found.fast]
    most, wide = max(way.tokens_per_second for way in ways), max(len(way.name) for way in ways)
    lines = [Text("tokens/s", style="bold")]
    for way in ways:
        bar = "█" * max(1, round(BAR * way.tokens_per_second / most))
        style = "red" if way is found.slow else "green"
        lines.append(
            Text.assemble(f"  {way.name:{wide}} {way.tokens_per_second:>8,.0f}  ", (f"{bar:{BAR}}", style), _about(way))
        )
    return lines


def _about(way: Way) -> str:
    quality = f"loss {way.loss:.2f}" if way.bits_per_byte is None else f"{way.bits_per_byte:.2f} bits/byte"
    return f"  {amount(way.tokens)} tokens, {quality}"


def trees(found: Findings, width: int) -> list[Text]:
    from rich.text import Text

    from headrace.demo.trees import both

    pair = (("the slow way", found.slow.report), ("the fast way", found.fast[0].report))
    return [Text.assemble(*line) for line in both(*pair, width)]


def losses(found: Findings, width: int) -> list[Text]:
    """One curve for each model of the fast way, by seconds, with the slow way as marks."""
    from rich.text import Text

    way, slow = found.fast[0], found.slow
    curve = list(zip(way.curve.seconds, way.curve.loss, strict=True))
    marks = list(zip(slow.curve.seconds, slow.curve.loss, strict=True))
    title = Text.assemble(
        ("training loss by seconds  ", "bold"),
        (f"line: {way.name}, the fast way", "cyan"),
        ("  o: the slow way", "magenta"),
    )
    chart = draw_chart(curve, marks, width=min(width, CHART_WIDTH), height=CHART_ROWS)
    ends = [*way.curve.seconds, *slow.curve.seconds]
    first, last = f"{min(ends):.0f} s", f"{max(ends):.0f} s"
    return [title, *chart, Text(f"{first:>9}{last:>{min(width, CHART_WIDTH) - 9}}", style="dim")]


def sample(found: Findings, width: int) -> list[Text]:
    from rich.text import Text

    from headrace.cli.train_panels import printable

    one = found.samples[0]
    lines = (one.prompt + one.text).expandtabs(4).splitlines()[:SAMPLE_LINES]
    title = Text(f"what the {one.model} writes after {found.fast[0].steps:,} steps", style="bold")
    return [title, *(Text(f"  | {printable(line)[: width - 4]}", style="green") for line in lines)]


def ending(found: Findings) -> list[Text]:
    from rich.text import Text

    return [
        Text.assemble(("All of it, measured in ", ""), (duration(found.seconds), "bold"), (f": {found.page}", "")),
        Text("Next, on your own data:", style="bold"),
        *(Text(f"  {command}") for command in found.next_commands),
    ]


def open_page(page: Path) -> None:
    """In a browser, if there is a screen that a person sits at."""
    if has_screen():
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


def has_screen() -> bool:
    if not sys.stdout.isatty() or any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "CI")):
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
