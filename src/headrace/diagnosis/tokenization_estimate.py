"""From a sample to the corpus: totals with their error, the share of a training step, hours that preparing saves."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec

# Student's t for a two-sided 95% interval, for 1, 2, ... degrees of freedom; 1.96 is its limit.
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
STUDENT_BEYOND = 2.08  # a little wide, so never too small
HOUR = 3600.0


class Estimate(msgspec.Struct, frozen=True):
    """A total that was extrapolated, and its 95% interval; None where one part alone was measured."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def error(self) -> float | None:
        """Half the interval."""
        return None if self.high is None else self.high - self.value

    def times(self, factor: float) -> Estimate:
        return Estimate(
            self.value * factor,
            None if self.low is None else self.low * factor,
            None if self.high is None else self.high * factor,
        )


def extrapolate(sizes: Sequence[float], amounts: Sequence[float], total: float) -> Estimate:
    """What `amounts`, found in parts of these sizes, come to in `total`.

    The rate is sum(amounts) / sum(sizes), and its error comes from how far the parts lie from that rate (the ratio
    estimator of survey sampling). So it holds what differs from place to place in the corpus and the noise of the
    clock alike, and shrinks with the root of the number of parts.
    """
    count, size = len(sizes), sum(sizes)
    if not size:
        return Estimate(0.0)
    rate = sum(amounts) / size
    if count < 2:
        return Estimate(rate * total)
    residuals = sum((amount - rate * part) ** 2 for part, amount in zip(sizes, amounts, strict=True))
    error = student(count - 1) * sqrt(residuals / (count * (count - 1))) / (size / count)
    return Estimate(rate * total, max(0.0, rate - error) * total, (rate + error) * total)


def student(degrees: int) -> float:
    return STUDENT[degrees - 1] if degrees <= len(STUDENT) else STUDENT_BEYOND


def share_of_step(training: float, tokenizing: float) -> float:
    """Of a step that trains at one rate and tokenizes at the other (tokens/s), one after the other."""
    return training / (training + tokenizing)


def rate_with(training: float, tokenizing: float) -> float:
    """Tokens/s that are left when a loop that trains at one rate waits for its tokens at the other."""
    return training * (1.0 - share_of_step(training, tokenizing))


class Saving(msgspec.Struct, kw_only=True, frozen=True):
    """Tokenizing in the loop in each epoch, against preparing once and reading in each epoch; in hours."""

    engine: str
    way: str
    epochs: float
    in_loop: Estimate
    prepare: Estimate  # once, on all the workers
    reading: Estimate  # of all epochs
    saved: Estimate


def saving(
    engine: str, way: str, *, in_loop: Estimate, once: Estimate, reading: Estimate, epochs: float, workers: int
) -> Saving:
    """From seconds per epoch (`in_loop`, `reading`) and core seconds (`once`)."""
    loop = in_loop.times(epochs / HOUR)
    prepare, read = once.times(1 / (workers * HOUR)), reading.times(epochs / HOUR)
    return Saving(
        engine=engine,
        way=way,
        epochs=epochs,
        in_loop=loop,
        prepare=prepare,
        reading=read,
        saved=difference(loop, prepare, read),
    )


def difference(whole: Estimate, *parts: Estimate) -> Estimate:
    """What is left of a total; the errors, which come from separate measurements, add as squares."""
    value = whole.value - sum(part.value for part in parts)
    errors = [estimate.error for estimate in (whole, *parts)]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return Estimate(value)
    error = sqrt(sum(one**2 for one in known))
    return Estimate(value, value - error, value + error)
