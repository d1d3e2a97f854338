"""Small tables, and what becomes of them where there is no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

GAP = 3


def plain_table(*columns: str) -> Table:
    """Without lines between columns, so that six of them fit into 80."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0, 0, 1), header_style="title")
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(column, justify=justify, no_wrap=True)
    return table


def print_table(console: Console, table: Table) -> None:
    """As it is where it fits, and in a pipe; on a narrow terminal each row as a few lines, with no number cut."""
    needed = _needed(console, table)
    if not console.is_terminal:
        console.width = max(console.width, needed)
    elif needed > console.width:
        for line in _stacked(console, table):
            console.print(line)
        return
    console.print(table)


def _needed(console: Console, table: Table) -> int:
    """Columns, with the texts in those that may be folded as narrow as their longest word."""
    from rich.measure import Measurement

    widest = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    return widest - sum(
        _longest(column) - _longest(column, words=True) for column in table.columns if not column.no_wrap
    )


def _longest(column: Column, *, words: bool = False) -> int:
    texts = [str(cell) for cell in (column.header, *column.cells)]
    return max(len(part) for text in texts for part in (text.split() if words else text.split("\n")) or [""])


def _stacked(console: Console, table: Table) -> list[Text]:
    """The names of a row, then its values with their heads."""
    from rich.text import Text

    heads = [str(column.header).replace("\n", " ") for column in table.columns]
    names = sum(1 for column in table.columns[:2] if column.justify == "left")
    lines = [Text(f"{heads[0]}:", style="label")] if heads[0] else []
    said = ""
    for cells in zip(*(list(column.cells) for column in table.columns), strict=True):
        said = str(cells[0]) or said
        lines.append(Text(" ".join([said, *map(str, cells[1:names])]), style="title"))
        values = zip(heads[names:], map(str, cells[names:]), strict=True)
        pieces = [Text.assemble((f"{head} ", "label"), value) for head, value in values if value]
        lines += [Text("  ").append_text(line) for line in flowed(pieces, GAP, console.width - 2)]
    return lines


def flowed(pieces: Sequence[Text], gap: int, width: int) -> list[Text]:
    """Whole pieces only: a line ends where the next one has no room."""
    lines: list[Text] = []
    for piece in pieces:
        if lines and lines[-1].cell_len + gap + piece.cell_len <= width:
            lines[-1].append(" " * gap).append_text(piece)
        else:
            lines.append(piece)
    return lines
