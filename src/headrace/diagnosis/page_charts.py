"""The drawings of a page: phases over the steps, and the flame of the Python part. Plain SVG and HTML, no script."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from headrace.diagnosis.report import PHASES

WIDE, HIGH = 1000, 100  # of a drawing, which is stretched to its place
DEEPEST = 48  # frames of a stack
NARROWEST = 0.002  # of all samples; what is narrower cannot be seen
ROW = 20  # pixels


def text(value: object) -> str:
    """Anything as text of a page, which it cannot leave."""
    return escape(str(value).encode("utf-8", "replace").decode(), quote=True)


def timeline(facts: Any) -> str:
    """The phases over the steps: as shares, and as milliseconds."""
    found = _timeline(facts)
    if found is None:
        return ""
    steps, phases = found
    totals = [sum(values[at] for values in phases.values()) for at in range(len(steps))]
    most = max(totals)
    shares = {name: [v / t if t else 0.0 for v, t in zip(vs, totals, strict=True)] for name, vs in phases.items()}
    heights = {name: [value / most for value in values] for name, values in phases.items()}
    return (
        "<section><h2>Over the steps</h2>"
        + _drawing("Shares of a step", "100%", shares, steps)
        + _drawing("Time of a step", f"{most:,.0f} ms" if most >= 10 else f"{most:.2f} ms", heights, steps)
        + _legend(phases)
        + "</section>"
    )


def _timeline(facts: Any) -> tuple[list[Any], dict[str, list[float]]] | None:
    """Nothing is drawn of what is not as it should be."""
    if not isinstance(facts, Mapping) or not isinstance(facts.get("phases"), Mapping):
        return None
    steps = list(facts.get("steps") or [])
    phases = {name: list(facts["phases"][name]) for name in PHASES if name in facts["phases"]}
    numbers = all(isinstance(value, (int, float)) and value >= 0 for values in phases.values() for value in values)
    if len(steps) < 2 or not phases or not numbers or any(len(values) != len(steps) for values in phases.values()):
        return None
    return (steps, phases) if any(map(any, phases.values())) else None


def _drawing(title: str, top: str, heights: Mapping[str, Sequence[float]], steps: Sequence[Any]) -> str:
    areas, floor = [], [0.0] * len(steps)
    for name, values in heights.items():
        roof = [low + value for low, value in zip(floor, values, strict=True)]
        areas.append(f'<path class="{name}" d="{_area(floor, roof)}"><title>{text(_label(name))}</title></path>')
        floor = roof
    return (
        f'<figure><figcaption>{text(title)} <span class="dim">(top: {text(top)})</span></figcaption>'
        f'<svg viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" role="img" aria-label="{text(title)}">'
        f'{"".join(areas)}</svg><div class="axis"><span>step {text(steps[0])}</span>'
        f"<span>step {text(steps[-1])}</span></div></figure>"
    )


def _area(floor: Sequence[float], roof: Sequence[float]) -> str:
    xs = [WIDE * at / (len(roof) - 1) for at in range(len(roof))]
    there = [f"{x:.1f},{HIGH * (1 - y):.2f}" for x, y in zip(xs, roof, strict=True)]
    back = [f"{x:.1f},{HIGH * (1 - y):.2f}" for x, y in zip(reversed(xs), reversed(floor), strict=True)]
    return f"M{' L'.join(there + back)} Z"


def _legend(names: Mapping[str, Any]) -> str:
    entries = (f'<span><i class="{name}"></i>{text(_label(name))}</span>' for name in names)
    return f'<p class="legend">{"".join(entries)}</p>'


def _label(name: str) -> str:
    return name.replace("_", " ")


def flame(facts: Any) -> str:
    """Folded stacks as boxes: as wide as their samples, callers above what they call."""
    stacks = _stacks(facts)
    total = sum(count for _, count in stacks)
    if not total:
        return ""
    boxes: list[str] = []
    depth = _boxes(stacks, boxes, level=0, left=0.0, total=total)
    return (
        '<section><h2>The Python part</h2><p class="dim">As wide as the time it took; a function stands below its '
        f'caller. {total:,.0f} samples.</p><div class="flame" style="height:{depth * ROW}px">{"".join(boxes)}</div>'
        "</section>"
    )


def _stacks(facts: Any) -> list[tuple[tuple[str, ...], float]]:
    if not isinstance(facts, Mapping):
        return []
    kept = ((key, count) for key, count in facts.items() if isinstance(count, (int, float)) and count > 0)
    return sorted((tuple(str(key).split(";"))[:DEEPEST], float(count)) for key, count in kept)


def _boxes(
    stacks: Sequence[tuple[tuple[str, ...], float]], boxes: list[str], *, level: int, left: float, total: float
) -> int:
    """Adds the boxes of sorted stacks that share their first `level` frames; gives the depth."""
    deepest = level
    deeper = (entry for entry in stacks if len(entry[0]) > level)
    for name, group in itertools.groupby(deeper, key=lambda entry: entry[0][level]):
        inside = list(group)
        width = sum(count for _, count in inside) / total
        if width >= NARROWEST:
            boxes.append(_box(name, left, width, level))
            deepest = max(deepest, _boxes(inside, boxes, level=level + 1, left=left, total=total), level + 1)
        left += width
    return deepest


def _box(name: str, left: float, width: float, level: int) -> str:
    tone = sum(map(ord, name)) % 5
    return (
        f'<div class="f{tone}" style="left:{100 * left:.3f}%;width:{100 * width:.3f}%;top:{level * ROW}px" '
        f'title="{text(name)} ({width:.1%})">{text(name)}</div>'
    )
