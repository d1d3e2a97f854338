"""The curves of a run as one picture."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import MissingDependency
from headrace.files import write_atomically
from headrace.pages.style import SERIES, phase_colour
from headrace.training.run_charts import SPANS
from headrace.training.titles import data_title, model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Axis = Sequence[float]

SIZE, DPI = (14.0, 8.6), 110  # inches; 1540 x 946 pixels
FEW = 3  # a curve of one point is not seen without a mark
LEAST_SHARE = 0.0005  # of the time; less is no line in the legend
INK, QUIET, GRID = "#24292f", "#6e7781", "#e4e7eb"
BLUE, ORANGE, GREEN = SERIES[0], SERIES[1], SERIES[5]
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so the picture is the same everywhere
    "text.color": INK,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": GRID,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def draw_curves(history: Mapping[str, Any], path: str | Path) -> None:
    """Write a PNG of a history, as History.as_dict or metrics_history.json has it."""
    figure = curves_figure(history)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=DPI)
    write_atomically(Path(path), picture.getvalue())


def curves_figure(history: Mapping[str, Any]) -> Figure:
    """The picture as a figure: loss over two columns, and four smaller ones."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise MissingDependency("matplotlib", "train", "Drawing the curves") from error
    with rc_context(STYLE):  # and no pyplot: a user's own figures and backend are left alone
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.02, hspace=0.02)
        figure = Figure(figsize=SIZE, layout=layout)
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, 6, height_ratios=(1.15, 1))
        _title(figure, history)
        _draw_loss(figure.add_subplot(grid[0, :4]), history)
        right = grid[0, 4:].subgridspec(2, 1, height_ratios=(1, 0.3))
        _draw_anatomy(figure.add_subplot(right[0]), figure.add_subplot(right[1]), history)
        _draw_rate(figure.add_subplot(grid[1, :2]), history)
        _draw_speed(figure.add_subplot(grid[1, 2:4]), history)
        _draw_norm(figure.add_subplot(grid[1, 4:]), history)
    return figure


def _title(figure: Figure, history: Mapping[str, Any]) -> None:
    run = history.get("run") or {}
    data = data_title(run)
    title = model_title(run) + (f", on {data}" if data else "")
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")


def _draw_loss(axes: Axes, history: Mapping[str, Any]) -> None:
    steps, loss = _numbers(history, "steps"), _numbers(history, "train_loss")
    val_steps, val = _numbers(history, "val_steps"), _numbers(history, "val_loss")
    axes.set_title("Loss")
    axes.plot(steps, loss, color=BLUE, alpha=0.25, linewidth=0.9, label="training, each interval")
    axes.plot(steps, smoothed(loss), color=BLUE, linewidth=1.8, label=f"training, smoothed{_last(smoothed(loss))}")
    if len(val):
        label = f"validation{_last(val)}"
        axes.plot(val_steps, val, color=ORANGE, linewidth=1.6, marker="o", markersize=4, label=label)
    bigram = (history.get("run") or {}).get("bigram_loss")
    if bigram is not None:
        axes.axhline(bigram, color=QUIET, linestyle="--", linewidth=1.1, label=f"bigram model {bigram:.3f}")
    _show_from(axes, np.concatenate([loss, val, [np.nan if bigram is None else bigram]]), loss)
    axes.set_ylabel("nats per token")
    _finish(axes, steps)
    axes.legend(loc="upper right")


def _draw_anatomy(axes: Axes, legend: Axes, history: Mapping[str, Any]) -> None:
    steps, shares = _numbers(history, "steps"), history.get("shares") or {}
    axes.set_title("Where the time of a step goes")
    known = [name for name in SPANS if name in shares] + [name for name in shares if name not in SPANS]
    rows = [np.nan_to_num(_column(shares[name])) for name in known]
    seconds = np.nan_to_num(_numbers(history, "seconds_per_step")) * np.diff(steps, prepend=0.0)
    means = [float(row @ seconds / seconds.sum()) if seconds.sum() > 0 else 0.0 for row in rows]
    if len(steps) and rows:
        colours = [phase_colour(name) for name in known]
        labels = [f"{name.replace('_', ' ')} {mean:.1%}" for name, mean in zip(known, means, strict=True)]
        axes.stackplot(steps, np.vstack(rows) * 100, colors=colours, labels=labels, linewidth=0)
        handles, names = axes.get_legend_handles_labels()
        seen = [i for i, mean in enumerate(means) if mean >= LEAST_SHARE or known[i] == "data_wait"]
        legend.legend([handles[i] for i in seen], [names[i] for i in seen], loc="center", ncols=2, handlelength=1)
    axes.set_ylim(0, 100)
    axes.set_ylabel("% of the time")
    _finish(axes, steps)
    legend.set_axis_off()


def _draw_rate(axes: Axes, history: Mapping[str, Any]) -> None:
    steps = _numbers(history, "steps")
    axes.set_title("Learning rate")
    axes.plot(steps, _numbers(history, "learning_rate"), color=GREEN, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:.1e}" if value else "0")
    _finish(axes, steps)


def _draw_speed(axes: Axes, history: Mapping[str, Any]) -> None:
    steps, speed = _numbers(history, "steps"), _numbers(history, "tokens_per_second")
    axes.set_title("Tokens per second")
    axes.plot(steps, speed, color=BLUE, linewidth=1.2)
    mfu = _numbers(history, "mfu")
    finite = speed[np.isfinite(speed)]
    notes = [f"median {np.median(finite):,.0f}"] if len(finite) else []
    notes += [f"MFU {np.nanmedian(mfu):.1%}"] if np.isfinite(mfu).any() else []
    axes.text(0.98, 0.06, ", ".join(notes), transform=axes.transAxes, ha="right", color=QUIET)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(_thousands)
    _finish(axes, steps)


def _draw_norm(axes: Axes, history: Mapping[str, Any]) -> None:
    steps, norm = _numbers(history, "steps"), _numbers(history, "grad_norm")
    axes.set_title("Gradient norm before clipping")
    axes.plot(steps, norm, color=BLUE, alpha=0.25, linewidth=0.9)
    axes.plot(steps, smoothed(norm), color=BLUE, linewidth=1.6)
    _show_from(axes, norm, norm)
    axes.set_ylim(bottom=0)
    _finish(axes, steps)


def _finish(axes: Axes, steps: Axis) -> None:
    axes.set_xlabel("step")
    axes.xaxis.set_major_formatter(_thousands)
    axes.locator_params(axis="x", nbins=6, integer=True)
    if len(steps) > 1:
        axes.set_xlim(steps[0], steps[-1])
    elif len(steps):
        axes.set_xlim(0, 1.05 * steps[0])
    if len(steps) < FEW:
        for line in axes.get_lines()[:2]:
            line.set_marker("o")
            line.set_markersize(4)
    axes.tick_params(length=0)


def _show_from(axes: Axes, values: Any, beginning: Any) -> None:
    """Limits for what happens after the start: the first 3% of a run would press all the rest flat."""
    early = len(beginning) // 33
    later = np.concatenate([beginning[early:], values[len(beginning) :]])
    later = later[np.isfinite(later)]
    if not len(later):
        return
    low, high = float(later.min()), float(np.percentile(later, 99.5) if len(later) > 200 else later.max())
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    axes.set_ylim(low - margin, high + margin)


def smoothed(values: Any, span: float = 0.02) -> Any:
    """A running mean over about a fiftieth of the curve, ahead and behind, that steps over gaps."""
    half = max(1, round(len(values) * span))
    known = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    places = np.arange(len(values))
    first, last = np.maximum(places - half, 0), np.minimum(places + half + 1, len(values))
    found = counts[last] - counts[first]
    return np.where(found > 0, (sums[last] - sums[first]) / np.maximum(found, 1), np.nan)


def _last(values: Any) -> str:
    known = values[np.isfinite(values)]
    return f" {known[-1]:.3f}" if len(known) else ""


def _numbers(history: Mapping[str, Any], name: str) -> Any:
    return _column(history.get(name) or [])


def _column(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _thousands(value: float, place: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:g}"
