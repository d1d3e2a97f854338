"""One way to print: JSON for scripts on stdout, tables for people, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")


def wants_json() -> bool:
    return "--json" in sys.argv


def print_json(value: Any) -> None:
    import msgspec

    from headrace.cli.characters import takes_all

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    if not takes_all(sys.stdout):
        import json

        text = json.dumps(json.loads(text), indent=2)  # \u00e9 for é: the same value in ASCII
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def out_console() -> Console:
    return _console(stderr=False)


def err_console() -> Console:
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """Lines end between words on a terminal, and where they end by themselves in a pipe."""
    from rich.console import Console

    from headrace.cli.theme import terminal_theme

    console = Console(stderr=stderr, highlight=False, theme=terminal_theme())
    console.soft_wrap = not console.is_terminal
    return console


def can_be_live(console: Console) -> bool:
    """Not in a pipe, not on a terminal that cannot move its cursor, nor on one without the characters."""
    return console.is_terminal and not console.is_dumb_terminal and not console.options.ascii_only


def print_facts(console: Console, rows: Sequence[tuple[str, str | Text]]) -> None:
    """What, and its value, in two columns. In a pipe a row is a line, however long."""
    if console.is_terminal:
        console.print(_facts(rows))
        return
    wide = max(len(name) for name, _ in rows)
    for name, value in rows:
        console.print(f"{name:{wide}}  {value}", markup=False, soft_wrap=True)


def _facts(rows: Sequence[tuple[str, str | Text]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="label", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value) if isinstance(value, str) else value)
    return table


def print_next(console: Console, words: str, command: str) -> None:
    """A command to copy: behind its words, or on a line of its own where there is no room."""
    from rich.text import Text

    fits = not console.is_terminal or len(words) + 2 + len(command) <= console.width
    line = Text.assemble((f"{words}:", "label"), " " if fits else "\n  ", command)
    console.print(line, soft_wrap=True)


def print_text(console: Console, text: str, *, bold: int = 0) -> None:
    """Somebody's text, its first characters bold: folded between words on a terminal, letter by letter in a pipe."""
    if not console.is_terminal:
        console.file.write(f"{text}\n")
        return
    from rich.text import Text

    shown = Text(visible(text))
    shown.stylize("title", 0, bold)
    console.print(shown)


def visible(text: str) -> str:
    """Control characters as pictures, so that a text cannot steer the terminal."""
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    code = ord(char)
    if code < 32 and char not in "\n\t":
        return chr(0x2400 + code)
    return "␡" if code == 127 else "�" if 128 <= code < 160 else char


def count(number: int, noun: str) -> str:
    """1 shard, 2,000 shards."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def amount(count: float) -> str:
    """1234567 -> 1.23 M."""
    for unit in ("", " k", " M", " G"):
        if abs(count) < 999.5:
            return f"{count:,.0f}" if not unit else f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} T"


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def rough(seconds: float) -> str:
    """An estimate, no more exact than it is: 40 s, 4 min, 2 h 10 min, 3 d 4 h."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
