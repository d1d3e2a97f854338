"""A sheet to draw boxes and arrows on, in inches from its lower left corner, in the look of a run's curves."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path as Line

from headrace.files import write_atomically
from headrace.training.plots import BLUE, GREEN, INK, ORANGE, QUIET, STYLE

DPI = 130
PLAIN, WRITE, READ, PACE = "#f6f8fa", "#dbe9fd", "#ddf1e2", "#fde3d5"
EDGES = {PLAIN: "#afb8c1", WRITE: BLUE, READ: GREEN, PACE: ORANGE}
Point = tuple[float, float]


class Sheet:
    def __init__(self, figure: Figure) -> None:
        self.width, self.height = figure.get_size_inches()
        self.figure = figure
        self.axes = figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, self.width)
        self.axes.set_ylim(0, self.height)
        self.axes.set_axis_off()

    def box(
        self, x: float, y: float, width: float, height: float, text: str = "", fill: str = PLAIN, **font: Any
    ) -> None:
        """Around a middle."""
        style = "round,pad=0,rounding_size=0.06"
        corner = (x - width / 2, y - height / 2)
        edge = EDGES.get(fill, QUIET)
        self.axes.add_patch(FancyBboxPatch(corner, width, height, style, facecolor=fill, edgecolor=edge, linewidth=1.1))
        self.text(x, y, text, **font)

    def frame(self, left: float, bottom: float, right: float, top: float, **line: Any) -> None:
        options = {"fill": False, "edgecolor": "#c3c9d0", "linestyle": (0, (4, 3)), "linewidth": 1.1, "zorder": 0.5}
        self.axes.add_patch(Rectangle((left, bottom), right - left, top - bottom, **{**options, **line}))

    def circle(self, x: float, y: float, text: str, radius: float = 0.13, fill: str = "white") -> None:
        self.axes.add_patch(Circle((x, y), radius, facecolor=fill, edgecolor=INK, linewidth=1.1, zorder=3))
        self.text(x, y, text, fontsize=12, zorder=4)

    def arrow(self, *points: Point, colour: str = INK, head: bool = True, **line: Any) -> None:
        """Straight from point to point."""
        options = {"linewidth": 1.2, "shrinkA": 0, "shrinkB": 0, "joinstyle": "miter", "capstyle": "butt", "zorder": 2}
        style = "-|>,head_length=4.5,head_width=2.2" if head else "-"
        patch = FancyArrowPatch(path=Line(points), arrowstyle=style, color=colour, **{**options, **line})
        patch.set_fill(head)
        self.axes.add_patch(patch)

    def dots(self, points: Sequence[Point], colour: str = INK, size: float = 3.5) -> None:
        self.axes.plot(*zip(*points, strict=True), "o", color=colour, markersize=size, zorder=3)

    def text(self, x: float, y: float, text: str, **font: Any) -> None:
        options = {"ha": "center", "va": "center", "fontsize": 10, "linespacing": 1.35, "zorder": 4}
        self.axes.text(x, y, text, **{**options, **font})

    def title(self, x: float, y: float, text: str, note: str = "") -> None:
        self.text(x, y, text, ha="left", va="baseline", fontsize=11.5, fontweight="bold")
        self.text(x, y - 0.15, note, ha="left", va="top", fontsize=9.5, color=QUIET)

    def plot(self, left: float, bottom: float, width: float, height: float) -> Axes:
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place)
        axes.tick_params(length=0, labelsize=9)
        return axes


@contextmanager
def new_sheet(path: str | Path, width: float, height: float) -> Iterator[Sheet]:
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield Sheet(figure)
        save(figure, path)


def save(figure: Figure, path: str | Path) -> None:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=DPI, facecolor="white")
    write_atomically(Path(path), picture.getvalue())
