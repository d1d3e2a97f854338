"""The parts of the view of a run: numbers, the anatomy of a step, the last text, and one plain line for logs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.chart import draw_chart
from headrace.cli.output import amount, rough
from headrace.cli.tables import flowed
from headrace.cli.theme import in_order, phase_letter, phase_style
from headrace.cli.train_status import RunStatus
from headrace.training.titles import data_title, model_title

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

CHART_ROWS = (3, 10)
NARROW = 24  # columns; a curve says nothing in fewer
LEAST_SHARE = 0.005  # of the time; less is no word in the legend, but for the wait for data
Cell = tuple[str, str, str]  # words, style of the value, value


def live_view(status: RunStatus, *, width: int, height: int, colour: bool) -> Group:
    """As wide as the terminal, and low enough that the terminal need not cut it."""
    from rich.console import Group

    title, bar = _title(status, width), _progress(status, width)
    rows = _wrapped([*_quality(status), *_speed(status)], width)
    anatomy = _anatomy(status, width, colour=colour)
    text = _sample(status, width)
    free = height - 2 - len(title) - len(bar) - len(rows) - len(anatomy)
    if free < len(text) + CHART_ROWS[0] + 1:
        text = []
    chart = _curve(status, width, min(CHART_ROWS[1], free - len(text) - 1))
    return Group(*title, *bar, *chart, *rows, *anatomy, *text)


def plain_line(status: RunStatus) -> str:
    """step 1,200/10,000  loss 3.412  val 3.520  tokens/s 12,345  data wait 0.1%  eta 4 min"""
    last, eta = status.last, status.eta()
    val = _number(status.evaluated.get("val_loss"), "{:.3f}")
    parts = [
        f"step {status.step:,}/{status.steps:,}" if status.steps else f"step {status.step:,}",
        f"loss {_number(last.get('loss'), '{:.3f}') or '-'}",
        f"val {val}" if val else "",
        *(f"{name} {value}" for name, value in _metrics(status)),
        f"tokens/s {_number(last.get('tokens_per_second'), '{:,.0f}') or '-'}",
        f"data wait {_number(last.get('data_wait_share'), '{:.1%}') or '-'}",
        f"eta {rough(eta)}" if eta is not None and status.step < status.steps else "",
    ]
    return "  ".join(part for part in parts if part)


def printable(text: str) -> str:
    """One line that cannot move the cursor, whatever a model wrote."""
    return "".join(char if char.isprintable() else " " for char in text)


def _title(status: RunStatus, width: int) -> list[Text]:
    from rich.text import Text

    data, device = data_title(status.run), status.run.get("device")
    words = Text(no_wrap=True, overflow="ellipsis")
    words.append(printable(model_title(status.run)), style="title")
    words.append(printable(f", on {data}" if data else ""))
    words.append(f"  {device}" if device else "", style="label")
    words.truncate(width, overflow="ellipsis")
    return [words]


def _progress(status: RunStatus, width: int) -> list[RenderableType]:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    eta = status.eta()
    words = Text.assemble(
        (f"{math.floor(100 * status.share)}%", "number"),
        (f"  {status.step:,}/{status.steps:,}", "label"),
        (f"  eta {rough(eta)}", "number") if eta is not None else "",
        no_wrap=True,
    )
    room = width - words.cell_len - 1
    if room < 8:
        words.truncate(width, overflow="ellipsis")
        return [words]
    grid = Table.grid(padding=(0, 1))
    grid.add_row(ProgressBar(total=1.0, completed=status.share, width=room), words)
    return [grid]


def _curve(status: RunStatus, width: int, height: int) -> list[Text]:
    from rich.text import Text

    steps, evals = status.history.steps, status.history.evals
    curve = list(_points(steps["steps"], steps["train_loss"]))
    if height < CHART_ROWS[0] or width < NARROW or len(curve) < 2:
        return []
    marks = list(_points(evals["val_steps"], evals["val_loss"]))
    lines = draw_chart(curve, marks, width=width, height=height)
    legend = "loss, o validation" if marks else "loss"
    span = f"step {curve[0][0]:,} to {max(curve[-1][0], marks[-1][0] if marks else 0):,}"
    foot = f"{legend}{span.rjust(width - len(legend))}" if len(legend) + len(span) + 2 <= width else legend
    return [*lines, Text(foot[:width], style="label", no_wrap=True)]


def _points(steps: Sequence[Any], values: Sequence[Any]) -> list[tuple[float, float]]:
    return [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]


def _quality(status: RunStatus) -> list[Cell]:
    last, found = status.last, status.evaluated
    best = f"{status.best[0]:.4f} at {status.best[1]:,}" if status.best else ""
    return _cells(
        ("loss", "loss", _number(last.get("loss"), "{:.4f}") or ("no number" if last else "")),
        ("val", "mark", _number(found.get("val_loss"), "{:.4f}")),
        ("best", "", best if status.best and status.best[0] != found.get("val_loss") else ""),
        ("perplexity", "", _number(found.get("perplexity"), "{:,.2f}")),
        ("accuracy", "", _number(found.get("accuracy"), "{:.1%}")),
        ("lr", "", _number(last.get("lr"), "{:.2e}")),
        ("grad norm", "", _number(last.get("grad_norm"), "{:.3g}")),
        ("skipped", "bad", _number(last.get("skipped") or None, "{:,}")),
        *((name, "", value) for name, value in _metrics(status)),
    )


def _metrics(status: RunStatus) -> list[tuple[str, str]]:
    """What the model itself reports, under the names it gives."""
    found = (status.last.get("metrics") or {}).items()
    return [(printable(name), number) for name, value in found if (number := _number(value, "{:.3g}"))]


def _speed(status: RunStatus) -> list[Cell]:
    from headrace.files import human_bytes

    last = status.last
    return _cells(
        ("tokens/s", "rate", _number(last.get("tokens_per_second"), "{:,.0f}")),
        ("MFU", "", _number(last.get("mfu"), "{:.1%}")),
        ("data wait", "number", _number(last.get("data_wait_share"), "{:.1%}")),
        ("tokens", "", _number(last.get("tokens"), amount)),
        ("cpu", "", _number(last.get("cpu"), "{:.0%}")),
        ("memory", "", _number(last.get("memory"), human_bytes)),
        ("gpu", "", _number(last.get("gpu"), "{:.0%}")),
        ("gpu memory", "", _number(last.get("gpu_memory"), human_bytes)),
        ("saved", "", f"step {status.checkpoint:,}" if status.checkpoint is not None else ""),
    )


def _cells(*cells: Cell) -> list[Cell]:
    return [cell for cell in cells if cell[2]]


def _wrapped(cells: Sequence[Cell], width: int) -> list[Text]:
    from rich.text import Text

    return _fitting([Text.assemble((f"{words} ", "label"), (value, style)) for words, style, value in cells], 3, width)


def _anatomy(status: RunStatus, width: int, *, colour: bool) -> list[Text]:
    """A step as one bar, then what its parts are."""
    from rich.text import Text

    shares = status.shares()
    if not shares:
        return []
    order = in_order(list(shares))
    bar, legend = Text(no_wrap=True), []
    edges = _edges([shares[name] for name in order], width)
    for name, start, stop in zip(order, edges[:-1], edges[1:], strict=True):
        style, letter = phase_style(name), phase_letter(name)
        bar.append(("█" if colour else letter) * (stop - start), style=style)
        if shares[name] >= LEAST_SHARE or name == "data_wait":
            mark = ("█ " if colour else f"{letter} ", style)
            legend.append(Text.assemble(mark, (f"{name.replace('_', ' ')} ", "label"), f"{shares[name]:.1%}"))
    return [bar, *_fitting(legend, 2, width)]


def _edges(shares: Sequence[float], width: int) -> list[int]:
    """Where the parts of a bar begin and end; rounding the sums leaves no hole and no rest."""
    edges, total = [0], 0.0
    for share in shares:
        total += share
        edges.append(round(total * width))
    return edges


def _fitting(pieces: Sequence[Text], gap: int, width: int) -> list[Text]:
    lines = flowed(pieces, gap, width)
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines


def _sample(status: RunStatus, width: int) -> list[Text]:
    """The end of the prompt, what follows in the data, what the model writes: a line each."""
    from rich.text import Text

    if not status.sample:
        return []
    lines = []
    for words, name, style in (("text", "prompt", ""), ("data", "expected", "good"), ("model", "predicted", "curve")):
        room = width - 7
        value = " ".join(printable(str(status.sample.get(name) or "")).split())
        shown = Text(value, style=style, no_wrap=True)
        if name == "prompt" and shown.cell_len > room:
            from rich.cells import set_cell_size

            shown = Text("…" + set_cell_size(value[::-1], room - 1).rstrip()[::-1], no_wrap=True)
        shown.truncate(max(1, room), overflow="ellipsis")
        lines.append(Text.assemble((words.ljust(7), "label"), shown, no_wrap=True))
    return lines


def _number(value: Any, shape: str | Callable[[float], str]) -> str:
    """Nothing for what is not there, and for NaN, which is no number to show."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return ""
    return shape.format(value) if isinstance(shape, str) else shape(value)
