"""Charts without script: curves and layers are SVG that fills its place, all text is HTML that keeps its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.pages.axes import SIZE, Form, Scale, Values, pieces, plain, scale_of, thinned
from headrace.pages.bars import bars, columns, shares, sparkline
from headrace.pages.figure import Curve, figure, hits, inside
from headrace.pages.figure import legend as legend_of
from headrace.pages.style import SERIES, phase_colour
from headrace.pages.text import is_number, text

__all__ = ["Curve", "bars", "columns", "lines", "shares", "sparkline", "stacked"]

FEW = 16  # points; so few are marked each
POINTS = 240  # of a layer


def lines(
    curves: Sequence[Curve],
    *,
    title: str = "",
    note: str = "",
    x_name: str = "step",
    form: Form = plain,
    log: bool = False,
    zero: bool = False,
    scale: Scale | None = None,
    x_scale: Scale | None = None,
    legend: bool | None = None,
    high: str = "13rem",
) -> str:
    """Curves over one axis. Nothing at all if no curve has a value."""
    shown = [_coloured(curve, place) for place, curve in enumerate(curves) if any(map(is_number, _reach(curve)))]
    if all(curve.look == "band" for curve in shown):
        return ""
    across = x_scale or _across(shown)
    up = scale or scale_of((v for curve in shown for v in _reach(curve)), log=log, zero=zero)
    drawn = inside("".join(_drawn(curve, across, up) for curve in shown))
    drawn += "".join(_dots(curve, across, up) for curve in shown)
    tips = hits(shown, across, x_name, form)
    names = legend_of(shown) if (legend if legend is not None else len(shown) > 1) else ""
    return figure(title, note, drawn, across, up, tips, names, form, high)


def _coloured(curve: Curve, place: int) -> Curve:
    return replace(curve, colour=curve.colour or SERIES[place % len(SERIES)])


def _across(curves: Sequence[Curve]) -> Scale:
    """From the first to the last point; from 0 if that is near."""
    first, last = min(curve.xs[0] for curve in curves), max(curve.xs[-1] for curve in curves)
    return Scale(0.0 if 0 <= first < 0.1 * last or first == last > 0 else first, last if last > first else last + 1)


def _reach(curve: Curve) -> list[float | None]:
    """All values that it shows."""
    return [*(() if curve.look == "band" else curve.ys), *(curve.low or ()), *(curve.high or ())]


def _drawn(curve: Curve, across: Scale, up: Scale) -> str:
    """The band and the line."""
    parts = [_band(curve, curve.low, curve.high, across, up)] if curve.low and curve.high else []
    xs, ys = thinned(curve.xs, curve.ys)
    runs = [] if curve.look == "band" else pieces(xs, ys)
    if curve.look in ("line", "dashed"):
        dashes = ' stroke-dasharray="5 4"' if curve.look == "dashed" else ""
        path = " ".join(_path(run, across, up) for run in runs if len(run) > 1)
        parts.append(f'<path d="{path}" fill="none" stroke="{text(curve.colour)}" stroke-width="1.8"{dashes}/>')
    return "".join(parts)


def _dots(curve: Curve, across: Scale, up: Scale) -> str:
    """All points of dots and of short curves, and points that stand alone."""
    runs = [] if curve.look == "band" else pieces(*thinned(curve.xs, curve.ys))
    few = curve.look == "dots" or sum(map(len, runs)) < FEW
    dots = [point for run in runs if few or len(run) == 1 for point in run]
    seen = [(x, y) for x, y in dots if 0 <= across.share(x) <= 1 and (y > 0 or not up.log) and 0 <= up.share(y) <= 1]
    if not seen:
        return ""
    path = "".join(f"M{_x(x, across)},{_y(y, up)}h.01" for x, y in seen)
    wide = 7 if curve.look == "dots" and len(seen) < 60 else 5
    return f'<path d="{path}" stroke="{text(curve.colour)}" stroke-width="{wide}" stroke-linecap="round"/>'


def _band(curve: Curve, lows: Values, highs: Values, across: Scale, up: Scale) -> str:
    """Between the lowest and the highest of each place; thinned by merging, so that no spike is lost."""
    size = max(1, -(-len(curve.xs) // POINTS))
    outline: list[list[tuple[float, float, float]]] = [[]]
    for at in range(0, len(curve.xs), size):
        under = [v for v in lows[at : at + size] if v is not None and is_number(v)]
        above = [v for v in highs[at : at + size] if v is not None and is_number(v)]
        if under and above:
            outline[-1].append((curve.xs[min(at + size // 2, len(curve.xs) - 1)], min(under), max(above)))
        elif outline[-1]:
            outline.append([])
    path = " ".join(
        _path([(x, top) for x, _, top in run] + [(x, low) for x, low, _ in reversed(run)], across, up) + "Z"
        for run in outline
        if len(run) > 1
    )
    return f'<path d="{path}" fill="{text(curve.colour)}" fill-opacity=".2" stroke="none"/>'


def _path(points: Sequence[tuple[float, float]], across: Scale, up: Scale) -> str:
    return "M" + "L".join(f"{_x(x, across)},{_y(y, up)}" for x, y in points)


def _x(value: float, across: Scale) -> str:
    return f"{SIZE * across.share(value):.1f}"


def _y(value: float, up: Scale) -> str:
    """What lies outside is drawn outside, where it cannot be seen, but no farther than coordinates can go."""
    share = -1.0 if up.log and value <= 0 else max(-9.0, min(10.0, up.share(value)))
    return f"{SIZE * (1 - share):.1f}"


def stacked(
    xs: Sequence[float],
    layers: Mapping[str, Values],
    *,
    title: str = "",
    note: str = "",
    x_name: str = "step",
    form: Form = plain,
    top: float | None = None,
    colours: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    legend: bool = True,
    high: str = "13rem",
) -> str:
    """Layers on each other, the first at the bottom, in the colours of phases if nothing else is said."""
    if not xs or not layers:
        return ""
    places, found = _merged(xs, layers)
    sums = [sum(values) for values in zip(*found.values(), strict=True)]
    up = Scale(0.0, top or max(sums) or 1.0)
    across = Scale(places[0], places[-1])
    shown = [
        Curve(name=(labels or {}).get(n, _label(n)), xs=places, ys=ys, colour=(colours or {}).get(n) or phase_colour(n))
        for n, ys in found.items()
    ]
    areas, floor = [], [0.0] * len(places)
    for name, curve in zip(found, shown, strict=True):
        roof = [low + (value or 0.0) for low, value in zip(floor, curve.ys, strict=True)]
        outline = [*zip(places, roof, strict=True), *zip(reversed(places), reversed(floor), strict=True)]
        areas.append(f'<path data-name="{text(name)}" d="{_path(outline, across, up)}Z" fill="{text(curve.colour)}"/>')
        floor = roof
    return figure(
        title,
        note,
        "".join(areas),
        across,
        up,
        hits([_without_zeros(curve) for curve in shown[::-1]], across, x_name, form),
        legend_of(shown, box=True) if legend else "",
        form,
        high,
    )


def _without_zeros(curve: Curve) -> Curve:
    """What is not there at a place is not told there."""
    return replace(curve, ys=[value or None for value in curve.ys])


def _merged(xs: Sequence[float], layers: Mapping[str, Values]) -> tuple[list[float], dict[str, list[float]]]:
    """In no more points than can be seen, each the mean of its own; one point alone becomes a flat stretch."""
    size = -(-len(xs) // POINTS)
    groups = range(0, len(xs), size)
    places = [xs[min(at + size, len(xs)) - 1] for at in groups]
    found = {name: [_mean(values[at : at + size]) for at in groups] for name, values in layers.items()}
    if len(places) == 1:
        return [places[0] - 1, places[0]], {name: values * 2 for name, values in found.items()}
    return places, found


def _mean(values: Values) -> float:
    known = [value for value in values if value is not None and is_number(value)]
    return sum(known) / len(known) if known else 0.0


def _label(name: str) -> str:
    return name.replace("_", " ")
