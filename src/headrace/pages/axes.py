"""Numbers to places: ticks that people would choose, linear and logarithmic scales, and curves thinned to a screen."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from headrace.pages.text import is_number, percent

SIZE = 1000.0  # of a drawing, each way; it is stretched to its place, and the text beside it is not
FAR = 1e100  # beyond it arithmetic would not stay finite
Values = Sequence[float | None]
Form = Callable[[float], str]  # a number as it is shown


class Scale(NamedTuple):
    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        low, high, value = (math.log(v) for v in (self.low, self.high, value)) if self.log else (*self[:2], value)
        return (value - low) / (high - low) if high > low else 0.5


def scale_of(values: Iterable[float | None], *, log: bool = False, zero: bool = False, margin: float = 0.05) -> Scale:
    """A range that holds all values, with some room; from 0 if wanted. Log only if all values allow it."""
    known = [min(max(float(value), -FAR), FAR) for value in values if value is not None and is_number(value)]
    if not known:
        return Scale(0.0, 1.0)
    low, high = min(known), max(known)
    if log and low > 1 / FAR:
        room = (high / low) ** margin if high > low else 2.0
        return Scale(low / room, high * room, True)
    spare = margin * (high - low) if high > low else 0.1 * abs(high) or 1.0
    floor = min(0.0, low) if zero else low - spare
    return Scale(max(0.0, floor) if low >= 0 else floor, high + spare)


def focused(values: Sequence[float | None], *others: Iterable[float | None]) -> Scale:
    """For what happens after the start: the first 3% of a run, or one rare spike, would press all the rest flat."""
    later = sorted(float(value) for value in values[len(values) // 33 :] if value is not None and is_number(value))
    if len(later) > 200:
        later = later[: math.ceil(0.995 * len(later))]
    return scale_of([*later, *(value for other in others for value in other)])


def ticks(scale: Scale, most: int = 5, *, whole: bool = False) -> list[float]:
    """At most about `most` round numbers inside the scale."""
    if scale.log:
        found = _log_ticks(scale, most)
        if len(found) >= 2:
            return found
    span = scale.high - scale.low
    if span <= 1e-9 * max(abs(scale.low), abs(scale.high), 1 / FAR):
        return [scale.low]
    step = _round_step(span / most)
    step = max(1.0, step) if whole else step
    first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least * (1 - 1e-9))


def _log_ticks(scale: Scale, most: int) -> list[float]:
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [f * 10.0**p for p in powers for f in factors if scale.low <= f * 10.0**p <= scale.high]
        if len(found) <= most + 1:
            return found
    return found[:: math.ceil(len(found) / most)]


def plain(value: float) -> str:
    """A number on an axis: 0.0003, 3.5, 1,200, 20 k, 1.5 M."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 10_000:
        for unit in (" k", " M", " G"):
            value /= 1000
            if abs(value) < 1000:
                return f"{value:.4g}{unit}"
        return f"{value / 1000:.4g} T"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1e}" if size < 0.0001 else f"{value:.4g}"


def evenly(values: Sequence[float], form: Form) -> list[str]:
    """Numbers of one axis, all with as many decimals: 0.110, 0.115, 0.120, and 0%, 5%, 10%."""
    if form is percent:
        whole = all(abs(100 * value - round(100 * value)) < 1e-6 for value in values)
        return [f"{value:.0%}" if whole or not value else f"{value:.1%}" for value in values]
    told = [form(value) for value in values]
    decimals = max((len(name.partition(".")[2]) for name in told), default=0)
    if form is not plain or any(not name.lstrip("-").replace(".", "").isdigit() for name in told):
        return told
    return [f"{value:.{decimals}f}" if value else "0" for value in values]


def thinned(xs: Sequence[float], ys: Values, most: int = 900) -> tuple[list[float], list[float | None]]:
    """Of each bucket its first, last, lowest and highest point, so that a spike stays; a gap stays a gap."""
    if len(xs) <= most:
        return list(xs), list(ys)
    size = math.ceil(4 * len(xs) / most)
    kept: list[int] = []
    for begin in range(0, len(xs), size):
        known = [at for at in range(begin, min(begin + size, len(xs))) if is_number(ys[at])]
        if not known:
            kept.append(begin)
            continue
        kept += sorted({known[0], known[-1], min(known, key=lambda at: ys[at]), max(known, key=lambda at: ys[at])})  # type: ignore[arg-type,return-value]
    return [xs[at] for at in kept], [ys[at] for at in kept]


def pieces(xs: Sequence[float], ys: Values) -> list[list[tuple[float, float]]]:
    """The points, cut where there is no value."""
    found: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(xs, ys, strict=True):
        if y is not None and is_number(y):
            found[-1].append((x, float(y)))
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]


def nearest(xs: Sequence[float], ys: Values, x: float, reach: float) -> float | None:
    """The value at the known point next to x, if it is within reach."""
    at = bisect_left(xs, x)
    close = sorted((abs(xs[i] - x), i) for i in range(max(0, at - 2), min(len(xs), at + 2)))
    return next((ys[i] for distance, i in close if distance <= reach and is_number(ys[i])), None)
