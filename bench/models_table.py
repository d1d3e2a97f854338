"""The tables and the picture of bench/models.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.training.plots import BLUE, DPI, GREEN, INK, ORANGE, QUIET, STYLE

BASE = "transformer"
COLOURS = {"transformer": BLUE, "ten": ORANGE, "neurogen": GREEN}
CLOCKS = {"cpu": "CPU time", "wall": "time"}
VERBS: dict[str, tuple[str, str, str, Callable[[dict[str, Any]], float]]] = {
    "train": ("Forward and backward", "tokens in a row", "memory per token, KB", lambda r: r["memory_per_token"] / 1e3),
    "generate": ("Generation", "tokens before", "cache, MB", lambda r: r["memory"] / 1e6),
}


def models_table(result: dict[str, Any]) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in parameters(result).items())
    threads, rounds = result["threads"], result["rounds"]
    title = (
        f"{result['size']}, {result['vocab']:,} ids, {result['precision']}, {threads} thread{'s' * (threads > 1)}, "
        f"medians of {rounds} round{'s' * (rounds > 1)}, {result['date']}, {result['machine']}"
    )
    lines = [
        title,
        f"Parameters: {counts}",
        "",
        f"    {result['command']}",
    ]
    for verb, (title, first, memory, value) in VERBS.items():
        if any(row["verb"] == verb for row in result["rows"]):
            time = f"{CLOCKS[result['clock']]} per token, ms"
            lines += ["", f"## {title}: {time}", "", *table(result, verb, first, shown_time)]
            lines += ["", f"## {title}: {memory}", "", *table(result, verb, first, lambda r, v=value: f"{v(r):,.1f}")]
    return "\n".join(lines)


def parameters(result: dict[str, Any]) -> dict[str, int]:
    """Of the shortest cell: a model that has a table of positions grows with its context."""
    rows = sorted((row for row in result["rows"] if "parameters" in row), key=lambda row: -row["length"])
    return {name: int(row["parameters"]) for name in result["models"] for row in rows if row["model"] == name}


def table(result: dict[str, Any], verb: str, first: str, show: Callable[[dict[str, Any]], str]) -> list[str]:
    models = result["models"]
    rows = {(row["length"], row["model"]): row for row in result["rows"] if row["verb"] == verb}
    lines = [f"| {first} | {' | '.join(models)} |", "|---:" * (1 + len(models)) + "|"]
    for length in dict.fromkeys(length for length, _ in rows):
        cells = [rows[length, model] for model in models]
        lines.append(f"| {length:,} | " + " | ".join(row.get("failed") or show(row) for row in cells) + " |")
    return lines


def shown_time(row: dict[str, Any]) -> str:
    low, high = min(row["all_time"]) * 1e3, max(row["all_time"]) * 1e3
    spread = f" ({low:.3g} - {high:.3g})" if len(row["all_time"]) > 1 else ""
    return f"{row['time'] * 1e3:.3g}{spread}"


def draw_picture(result: dict[str, Any], path: Path) -> None:
    """Time per token against length, in training and in generation."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        draw_times(left, result, "train", "Training, forward and backward", "tokens in a row")
        draw_times(right, result, "generate", "Generating one more token", "tokens before it")
        left.set_ylabel(f"{CLOCKS[result['clock']]} per token, ms")
        handles, names = left.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)


def draw_times(axes: Any, result: dict[str, Any], verb: str, title: str, label: str) -> None:
    axes.set_title(title)
    for model in result["models"]:
        rows = [row for row in result["rows"] if (row["verb"], row["model"]) == (verb, model) and "time" in row]
        lengths, times = [row["length"] for row in rows], [row["time"] * 1e3 for row in rows]
        colour = COLOURS.get(model, QUIET)
        axes.plot(lengths, times, color=colour, linewidth=1.8, marker="o", markersize=4, label=model)
        if rows:
            axes.annotate(f"{times[-1]:.2g}", (lengths[-1], times[-1]), xytext=(7, -3), textcoords="offset points",
                          color=INK, fontsize=9)  # fmt: skip
    lengths = sorted({row["length"] for row in result["rows"] if row["verb"] == verb})
    if lengths:
        axes.set_xscale("log", base=2)
        axes.set_xlim(lengths[0] / 1.1, lengths[-1] * 1.35)
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label)
    axes.tick_params(length=0)
