"""What all rules are made of: a row of the table, and a few questions to the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from headrace.diagnosis.evidence import Evidence
from headrace.diagnosis.report import Fix, Phase, Site

SHARE = 0.05  # of a step; what costs less is not worth anybody's time
LEAST_MS = 0.2  # of a step; steps of a millisecond are all overhead, and nobody's problem


class Rule(NamedTuple):
    """One row of the table."""

    name: str
    cause: str
    evidence: str
    threshold: str
    advice: str
    look: Callable[[Evidence], Fix | None]
    first: bool = False  # before everything that only costs time: a run that learns nothing cannot be too fast
    rest: bool = False  # only where no rule before it has named its phase


def phase_of(evidence: Evidence, name: str) -> Phase:
    return next((phase for phase in evidence.phases if phase.name == name), Phase(name=name, ms=0.0, share=0.0))


def milliseconds(evidence: Evidence, *names: str) -> float:
    return sum(phase_of(evidence, name).ms for name in names)


def matters(evidence: Evidence, ms: float, least: float = SHARE) -> bool:
    return evidence.step_ms > 0 and ms >= LEAST_MS and ms / evidence.step_ms >= least


def dearest(sites: Iterable[Site]) -> Site | None:
    return max(sites, key=lambda site: site.ms, default=None)


def first_site(evidence: Evidence, name: str) -> Site | None:
    return dearest(phase_of(evidence, name).sites)


def percent(share: float) -> str:
    return f"{share:.0%}"


def cost(evidence: Evidence, ms: float) -> str:
    """206 ms of a step (50%)"""
    return f"{number(ms)} ms of a step ({percent(ms / evidence.step_ms)})"


def number(value: float) -> str:
    """Three figures, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def plural(count: float, word: str) -> str:
    return f"{number(count)} {word}" if count == 1 else f"{number(count)} {word}s"
