"""One way to print: JSON for scripts on stdout, tables for people, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")


def wants_json() -> bool:
    return "--json" in sys.argv


def print_json(value: Any) -> None:
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
    sys.stdout.flush()


def out_console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def err_console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """A two-column table without lines: what, and its value."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def amount(count: float) -> str:
    """1234567 -> 1.23 M."""
    for unit in ("", " k", " M", " G"):
        if abs(count) < 1000:
            return f"{count:,.0f}" if not unit else f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} T"


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
