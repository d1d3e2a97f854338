"""Bars, columns, a line of shares, and a curve as small as a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.pages.axes import SIZE, Values, pieces, plain, scale_of, thinned
from headrace.pages.style import SERIES, phase_colour
from headrace.pages.text import text


def bars(
    rows: Sequence[tuple[str, float, str]], *, colours: Mapping[str, str] | None = None, top: float | None = None
) -> str:
    """Name, value and what is written of it; as long as the value."""
    most = top or max((value for _, value, _ in rows), default=0.0) or 1.0
    lines = []
    for name, value, shown in rows:
        colour = (colours or {}).get(name) or SERIES[0]
        long = 100 * min(max(value / most, 0.0), 1.0)
        lines.append(
            f"<div><span>{text(name)}</span>"
            f'<span class="hr-track"><i style="width:{long:.1f}%;background:{text(colour)}"></i></span>'
            f"<b>{text(shown)}</b></div>"
        )
    return f'<div class="hr-bars">{"".join(lines)}</div>' if lines else ""


def columns(
    counts: Sequence[float], names: Sequence[str], *, title: str = "", note: str = "", high: str = "8rem"
) -> str:
    """Upright bars side by side, as in a histogram: `names` are what is said of each when the mouse is over it."""
    most = max(counts, default=0)
    if most <= 0:
        return ""
    wide = SIZE / len(counts)
    drawn = "".join(
        f'<rect x="{at * wide + wide * 0.06:.1f}" y="{SIZE * (1 - count / most):.1f}" width="{wide * 0.88:.1f}" '
        f'height="{max(SIZE * count / most, 4.0 if count else 0.0):.1f}" fill="{SERIES[0]}"/>'
        for at, count in enumerate(counts)
    )
    hits = "".join(
        f'<div class="hr-hit{" hr-right" * (at > len(counts) / 2)}" style="left:{100 * at / len(counts):.2f}%;'
        f'width:{100 / len(counts):.2f}%" data-tip="{text(name)}"></div>'
        for at, name in enumerate(names)
    )
    caption = f'<figcaption>{text(title)}<span class="hr-note">{text(note)}</span></figcaption>' if title else ""
    return (
        f'<figure class="hr-chart">{caption}<div class="hr-plot" style="--hr-high:{high}">'
        f'<svg viewBox="0 0 {SIZE:.0f} {SIZE:.0f}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(title or "histogram")}">{drawn}</svg>{hits}</div></figure>'
    )


def shares(parts: Mapping[str, float], *, colours: Mapping[str, str] | None = None) -> str:
    """One line, divided: as wide as its part of the whole."""
    total = sum(parts.values()) or 1.0
    tones = {name: (colours or {}).get(name) or phase_colour(name) for name in parts}
    boxes = "".join(
        f'<i style="width:{100 * part / total:.2f}%;background:{text(tones[name])}" '
        f'title="{text(name.replace("_", " "))} {part / total:.1%}"></i>'
        for name, part in parts.items()
        if part > 0
    )
    return f'<div class="hr-share" role="img" aria-label="shares">{boxes}</div>' if boxes else ""


def sparkline(values: Values, *, colour: str = SERIES[0]) -> str:
    """The course of something, without axes."""
    xs, ys = thinned([float(at) for at in range(len(values))], values, 120)
    runs = [run for run in pieces(xs, ys) if len(run) > 1]
    if not runs:
        return ""
    scale, last = scale_of(ys, margin=0.08), max(xs)
    up = scale._replace(low=min(y for run in runs for _, y in run) - 0.08 * (scale.high - scale.low))
    path = " ".join(
        "M" + "L".join(f"{100 * x / last:.1f},{24 * (1 - up.share(y)):.1f}" for x, y in run) for run in runs
    )
    first, final = runs[0][0][1], runs[-1][-1][1]
    return (
        f'<svg class="hr-spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" '
        f'aria-label="from {plain(first)} to {plain(final)}"><path d="{path}" stroke="{text(colour)}"/></svg>'
    )
