"""What stands around a drawing: title, axes with numbers, the strips that say values, the legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.pages.axes import SIZE, Form, Scale, Values, evenly, nearest, plain, ticks
from headrace.pages.text import text

HITS = 80  # strips that say their values when the mouse is over them


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One series. xs rise; ys have None where there is no value; low and high are a band behind the line."""

    name: str
    xs: Sequence[float]
    ys: Values
    colour: str = ""  # the next of the palette if empty
    look: Literal["line", "dashed", "dots", "band"] = "line"  # a band alone has no line
    low: Values | None = None
    high: Values | None = None


def hits(curves: Sequence[Curve], across: Scale, x_name: str, form: Form) -> str:
    """Strips over the plot; each shows the values at its middle."""
    longest = max((curve for curve in curves if curve.look != "band"), key=lambda curve: len(curve.xs)).xs
    places = [x for x in sorted({*longest[:: -(-len(longest) // HITS)], longest[-1]}) if 0 <= across.share(x) <= 1]
    edges = [across.share(x) for x in places]
    strips = []
    for at, (x, share) in enumerate(zip(places, edges, strict=True)):
        left = (edges[at - 1] + share) / 2 if at else 0.0
        right = (share + edges[at + 1]) / 2 if at + 1 < len(edges) else 1.0
        reach = (right - left) * (across.high - across.low) * 0.75 + 1e-9
        told = [(curve.name, nearest(curve.xs, curve.ys, x, reach)) for curve in curves if curve.look != "band"]
        tip = "\n".join([f"{x_name} {plain_x(x)}", *(f"{name}  {form(y)}" for name, y in told if y is not None)])
        side = " hr-right" if share > 0.5 else ""
        place = f"left:{100 * left:.2f}%;width:{100 * (right - left):.2f}%"
        strips.append(f'<div class="hr-hit{side}" style="{place}" data-tip="{text(tip)}"></div>')
    return "".join(strips)


def plain_x(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def legend(curves: Sequence[Curve], *, box: bool = False) -> str:
    entries = []
    for curve in curves:
        colour = text(curve.colour)
        if box or curve.look == "band":
            faint = "" if box else ";opacity:.3"
            mark = f'<i style="background:{colour}{faint}"></i>'
        elif curve.look == "dots":
            mark = f'<i class="hr-dots" style="background:{colour}"></i>'
        else:
            kind = "dashed" if curve.look == "dashed" else "solid"
            mark = f'<i class="hr-line" style="border-color:{colour};border-top-style:{kind}"></i>'
        entries.append(f"<span>{mark}{text(curve.name)}</span>")
    return f'<div class="hr-legend">{"".join(entries)}</div>'


def figure(
    title: str, note: str, drawn: str, across: Scale, up: Scale, tips: str, names: str, form: Form, high: str
) -> str:
    levels, places = ticks(up), ticks(across, 5, whole=across.high - across.low >= 4)
    grid = "".join(f"M0,{SIZE * (1 - up.share(value)):.1f}H{SIZE:.0f}" for value in levels)
    told = list(zip(evenly(levels, form), levels, strict=True))
    sides = "".join(
        f'<span style="top:{100 * (1 - up.share(value)):.2f}%">{text(name)}</span>' for name, value in told
    ) + "".join(f"<b>{text(name)}</b>" for name, _ in told)
    caption = f'<figcaption>{text(title)}<span class="hr-note">{text(note)}</span></figcaption>' if title else ""
    return (
        f'<figure class="hr-chart">{caption}<div class="hr-frame"><div class="hr-ys">{sides}</div>'
        f'<div class="hr-plot" style="--hr-high:{high}"><svg viewBox="0 0 {SIZE:.0f} {SIZE:.0f}" '
        f'preserveAspectRatio="none" role="img" aria-label="{text(title or note or "chart")}">'
        f'<path class="hr-grid" d="{grid}"/>{drawn}</svg>{tips}</div>'
        f'<div class="hr-xs">{_below(places, across)}</div></div>{names}</figure>'
    )


def inside(drawn: str) -> str:
    """What leaves the plot cannot be seen; dots at its edge are not part of this and stay whole."""
    return f'<svg width="{SIZE:.0f}" height="{SIZE:.0f}" viewBox="0 0 {SIZE:.0f} {SIZE:.0f}">{drawn}</svg>'


def _below(places: Sequence[float], across: Scale) -> str:
    spans = []
    for value in places:
        share = across.share(value)
        kind = ' class="hr-first"' if share < 0.03 else ' class="hr-last"' if share > 0.97 else ""
        spans.append(f'<span{kind} style="left:{100 * share:.2f}%">{text(plain(value))}</span>')
    return "".join(spans)
