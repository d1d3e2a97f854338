"""The learning rate of a step, computed from the step's number and from nothing else.

Steps count from 0. Warm-up takes one equal stride per step and arrives at the peak at step `warmup`; the first step
already has one stride, because a step at rate 0 would learn nothing. For the same reason the floor belongs to step
`total`, the one after the last: a run that decays to 0 spends its last step just above it.
"""

from __future__ import annotations

import math

from headrace.errors import UsageError

KINDS = ("cosine", "wsd", "linear", "constant")
COOLDOWNS = ("sqrt", "linear")


def learning_rate(
    step: int,
    *,
    kind: str,
    peak: float,
    warmup: float,
    total: int,
    min_ratio: float = 0.0,
    decay_fraction: float = 0.2,
    cooldown: str = "sqrt",
) -> float:
    """The rate of this step; `warmup` below 1 is a fraction of the run, from 1 upwards a number of steps."""
    rise = warmup_steps(warmup, total)
    check_schedule(
        kind=kind,
        peak=peak,
        warmup=warmup,
        total=total,
        min_ratio=min_ratio,
        decay_fraction=decay_fraction,
        cooldown=cooldown,
    )
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    if kind == "constant":
        return peak
    start = total - decay_steps(decay_fraction, total) if kind == "wsd" else rise
    part = min(1.0, max(0.0, (step - start) / (total - start)))
    high = _remaining(part, kind, cooldown)
    # Written as a blend, so that 1 gives the peak and 0 the floor to the last bit.
    return high * peak + (1.0 - high) * (min_ratio * peak)


def warmup_steps(warmup: float, total: int) -> int:
    return round(warmup * total) if warmup < 1 else int(warmup)


def decay_steps(decay_fraction: float, total: int) -> int:
    """How long the cool-down of WSD takes; one step at least."""
    return max(1, round(decay_fraction * total))


def check_schedule(
    *,
    kind: str,
    peak: float,
    warmup: float,
    total: int,
    min_ratio: float = 0.0,
    decay_fraction: float = 0.2,
    cooldown: str = "sqrt",
) -> None:
    """Raise UsageError for a schedule that cannot be."""
    if kind not in KINDS:
        raise UsageError(f"schedule {kind!r} is not one of {', '.join(KINDS)}")
    if cooldown not in COOLDOWNS:
        raise UsageError(f"cool-down {cooldown!r} is not one of {', '.join(COOLDOWNS)}")
    if not (math.isfinite(peak) and peak > 0):
        raise UsageError(f"learning rate {peak} is not a number above 0")
    if not 0 <= min_ratio <= 1:
        raise UsageError(f"minimum ratio {min_ratio} is not between 0 and 1: it is a share of the peak rate")
    if not 0 < decay_fraction <= 1:
        raise UsageError(f"decay fraction {decay_fraction} is not above 0 and at most 1: it is a share of the run")
    if total < 1:
        raise UsageError(f"a run of {total} steps has no schedule: it needs at least 1")
    _check_room(kind, warmup, total, decay_fraction)


def _check_room(kind: str, warmup: float, total: int, decay_fraction: float) -> None:
    rise = warmup_steps(warmup, total)
    fall = decay_steps(decay_fraction, total) if kind == "wsd" else 0
    if rise < 0 or (warmup >= 1 and warmup != rise):
        raise UsageError(f"warm-up {warmup} is neither a number of steps nor a fraction below 1")
    if rise + fall > total or (rise == total and kind != "constant"):
        decay = f" and {fall:,} of cool-down" if fall else ""
        raise UsageError(
            f"{rise:,} steps of warm-up{decay} do not fit into a run of {total:,}. Shorten them or train longer."
        )


def _remaining(part: float, kind: str, cooldown: str) -> float:
    """How much of the way from the floor to the peak is left after this part of the decay."""
    if kind == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * part))
    if kind == "wsd" and cooldown == "sqrt":
        return 1.0 - math.sqrt(part)
    return 1.0 - part
