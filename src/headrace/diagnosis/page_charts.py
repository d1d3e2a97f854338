"""The drawings of a page: phases over the steps, and the flame of the Python part. Plain SVG and HTML, no script."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.diagnosis.report import PHASES
from headrace.pages.axes import plain
from headrace.pages.charts import stacked
from headrace.pages.text import is_number, percent, text

DEEPEST = 48  # frames of a stack
NARROWEST = 0.002  # of all samples; what is narrower cannot be seen
ROW = 20  # pixels


def timeline(facts: Any) -> str:
    """The phases over the steps: as shares, and as milliseconds."""
    found = _timeline(facts)
    if found is None:
        return ""
    steps, phases = found
    totals = [sum(values[at] for values in phases.values()) for at in range(len(steps))]
    shares = {name: [v / t if t else 0.0 for v, t in zip(vs, totals, strict=True)] for name, vs in phases.items()}
    return (
        '<section><h2>Over the steps</h2><div class="pair">'
        + stacked(steps, shares, title="Shares of a step", form=percent, top=1.0)
        + stacked(steps, phases, title="Time of a step", form=lambda ms: f"{plain(ms)} ms")
        + "</div></section>"
    )


def _timeline(facts: Any) -> tuple[list[Any], dict[str, list[float]]] | None:
    """Nothing is drawn of what is not as it should be."""
    if not isinstance(facts, Mapping) or not isinstance(facts.get("phases"), Mapping):
        return None
    steps = list(facts.get("steps") or [])
    if not all(map(is_number, steps)):
        return None
    phases = {name: list(facts["phases"][name]) for name in PHASES if name in facts["phases"]}
    numbers = all(isinstance(value, (int, float)) and value >= 0 for values in phases.values() for value in values)
    if len(steps) < 2 or not phases or not numbers or any(len(values) != len(steps) for values in phases.values()):
        return None
    return (steps, phases) if any(map(any, phases.values())) else None


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
