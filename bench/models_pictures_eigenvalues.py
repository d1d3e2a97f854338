"""eigenvalues.png: the eigenvalues of every layer of a TEN, those it began with and those it has learned."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from models_pictures_sheet import save
from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.models import build_model, describe_model
from headrace.models.ten import TEN, Eigenvalues
from headrace.training.plots import BLUE, QUIET, STYLE
from headrace.training.saved import load_run

WIDTH, HISTOGRAMS = 10.0, 2.7  # inches
LEAST_COLUMNS, MOST_COLUMNS = 3, 8
EXPLANATION = "in the complex plane, at a pace of 1; hollow: at the start, coloured: after training; arc: unit circle"
View = tuple[float, float, float, float]  # left, right, bottom, top


class Spectrum(NamedTuple):
    """Of all layers, [layers, eigenstates], at a pace of 1."""

    log_decay: NDArray[np.float64]
    turn: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.complex128]:
        found: NDArray[np.complex128] = np.exp(self.log_decay + 2j * math.pi * self.turn)
        return found

    @property
    def half_life(self) -> NDArray[np.float64]:
        """In tokens."""
        return -math.log(2) / self.log_decay

    @property
    def period(self) -> NDArray[np.float64]:
        """Tokens for a whole turn; a frequency that has come to about 0 counts as a turn in 100,000."""
        return 1 / np.abs(self.turn).clip(min=1e-5)


def draw_eigenvalues(run: str | Path | TEN, path: str | Path, *, checkpoint: str = "latest") -> None:
    """Write a PNG for a run's folder or a model; the start is the same model, built again."""
    model, title = (run, "trained") if isinstance(run, TEN) else _load(run, checkpoint)
    told = describe_model(model)["model"]
    fresh = build_model(
        told["name"], told["size"], vocab_size=told["vocab_size"], context=told["context"], **told["options"]
    )
    with rc_context(STYLE):
        save(_figure(spectrum(fresh), spectrum(model), title), path)


def spectrum(model: TEN) -> Spectrum:
    """What the model itself makes of its rates and frequencies where no token changes the pace."""
    decays, turns = [], []
    for module in model.modules():
        if isinstance(module, Eigenvalues):
            still = copy.deepcopy(module).cpu()
            still.pace = None
            log_decay, turn = still(torch.empty(0))
            decays.append(log_decay.detach().flatten().double().numpy())
            turns.append(turn.detach().flatten().double().numpy())
    return Spectrum(np.stack(decays), np.stack(turns))


def _load(run: str | Path, checkpoint: str) -> tuple[TEN, str]:
    saved = load_run(run, checkpoint=checkpoint, device="cpu")
    if not isinstance(saved.model, TEN):
        raise UsageError(f"{run} is a run of {type(saved.model).__name__}; only TEN has eigenvalues. Use --model ten.")
    manifest = saved.manifest
    return saved.model, f"after {manifest.step:,} steps, {_rounded(manifest.tokens)} tokens"


def _figure(start: Spectrum, end: Spectrum, title: str) -> Figure:
    rows, columns = _grid(len(start.turn))
    view = _view(np.concatenate([start.values.ravel(), end.values.ravel()]))
    side = (WIDTH - 1.1) / columns * (view[3] - view[2]) / (view[1] - view[0])
    planes = rows * (side + 0.28) + 0.8
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    figure = Figure(figsize=(WIDTH, planes + HISTOGRAMS), layout=layout)
    FigureCanvasAgg(figure)
    upper, lower = figure.subfigures(2, 1, height_ratios=(planes, HISTOGRAMS))
    upper.suptitle(f"Eigenvalues of TEN, {title}", x=0.012, ha="left", fontsize=13, fontweight="bold")
    _draw_planes(upper, rows, columns, start, end, view)
    left, right = lower.subplots(1, 2)
    _draw_histogram(left, start.half_life, end.half_life, "Half-life, in tokens")
    _draw_histogram(right, start.period, end.period, "Tokens for a whole turn")
    return figure


def _draw_planes(part: SubFigure, rows: int, columns: int, start: Spectrum, end: Spectrum, view: View) -> None:
    shades = ScalarMappable(LogNorm(1, max(2.0, float(start.half_life.max()))), "viridis")
    grid = part.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for layer, axes in enumerate(grid.ravel()):
        if layer < len(start.turn):
            colours = shades.to_rgba(end.half_life[layer])
            _draw_layer(axes, layer, start.values[layer], end.values[layer], colours, view)
        else:
            axes.set_axis_off()
    part.supxlabel(EXPLANATION, fontsize=9, color=QUIET)
    bar = part.colorbar(shades, ax=grid, aspect=50, pad=0.01, format=lambda value, place: f"{value:,.0f}")
    bar.set_label("half-life, in tokens", fontsize=9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, which="both")


def _draw_layer(axes: Axes, layer: int, start: Any, end: Any, colours: Any, view: View) -> None:
    axes.set_title(f"Layer {layer + 1}", fontsize=10)
    circle = np.exp(1j * np.linspace(0, math.tau, 721))
    axes.plot(circle.real, circle.imag, color="#afb8c1", linewidth=1)
    paths = np.stack([start, end], 1)
    axes.add_collection(LineCollection(np.stack([paths.real, paths.imag], -1), colors="#c3c9d0", linewidths=0.8))
    axes.scatter(start.real, start.imag, s=13, facecolors="none", edgecolors="#9aa3ad", linewidths=0.7)
    axes.scatter(end.real, end.imag, s=11, color=colours, linewidths=0, zorder=3)
    axes.set_xlim(view[0], view[1])
    axes.set_ylim(view[2], view[3])
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    axes.tick_params(length=0, labelsize=8)


def _draw_histogram(axes: Axes, start: Any, end: Any, title: str) -> None:
    both = np.concatenate([start.ravel(), end.ravel()])
    bins = np.geomspace(both.min() / 1.01, both.max() * 1.01, 33)
    axes.set_title(title, fontsize=10)
    axes.hist(end.ravel(), bins, color=BLUE, alpha=0.55, label="after training")
    axes.hist(start.ravel(), bins, histtype="step", color=QUIET, linewidth=1.4, label="at the start")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, place: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel("eigenstates, all layers")
    axes.tick_params(length=0, which="both")
    axes.set_ylim(top=1.3 * axes.get_ylim()[1])
    axes.legend(loc="upper right", ncols=2)


def _view(values: NDArray[np.complex128]) -> View:
    """Around all points and the origin: of the unit circle what is needed, since all begin in its first quarter."""
    room = 0.06
    x, y = values.real, values.imag
    return min(0.0, x.min()) - room, 1 + room, min(0.0, y.min()) - room, max(0.0, y.max()) + room


def _grid(layers: int) -> tuple[int, int]:
    """Rows and columns, with full rows if there is such a number."""
    least = max(min(LEAST_COLUMNS, layers), math.ceil(math.sqrt(layers)))
    columns = next((n for n in range(least, MOST_COLUMNS + 1) if layers % n == 0), min(least, MOST_COLUMNS))
    return math.ceil(layers / columns), columns


def _rounded(number: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)
