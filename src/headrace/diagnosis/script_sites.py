"""Lines of the script, from what the hooks counted and what the sampler saw."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.diagnosis.report import Site

SAMPLED = ("python", "data_wait")  # phases whose lines the hooks do not all know
LEAST = 0.01  # of a phase; lines below it are left out
LEAST_SEEN = 3  # samples; fewer are chance
MOST = 12  # lines of a phase


class Row(NamedTuple):
    """What the hooks counted at a line, as a probe writes it."""

    phase: str
    what: str
    file: str
    line: int
    function: str
    through: str
    calls: float
    seconds: float
    amount: float  # texts, or bytes


class Sampled(NamedTuple):
    """What the sampler saw at a line, as a probe writes it."""

    phase: str
    file: str
    line: int
    function: str
    batches: bool  # in a function that makes batches
    seen: int


def site_of(row: Row, steps: int) -> Site:
    calls, ms = row.calls / steps, row.seconds * 1e3 / steps
    return make_site(row.file, row.line, row.function, row.through, what=row.what, calls=calls, ms=ms)


def make_site(file: str, line: int, function: str, through: str = "", **values: Any) -> Site:
    if not file and through:  # a library that nobody's script called
        file, _, number = through.rpartition(":")
        line, through = int(number), ""
    if through and values.get("what"):
        values["what"] += f" ({through})"
    return Site(file=file, line=line, function=function, code=linecache.getline(file, line).strip(), **values)


def site_at(place: list[Any] | None, **values: Any) -> Site | None:
    return make_site(*place, **values) if place and (place[0] or place[3]) else None


def merged(rows: Iterable[Sequence[Any]]) -> list[Row]:
    """One row per line and call."""
    by_key: dict[tuple[Any, ...], Row] = {}
    for row in (Row(*one) for one in rows):
        key = row[:6]
        before = by_key.get(key)
        by_key[key] = row if before is None else _sum(before, row)
    return list(by_key.values())


def _sum(a: Row, b: Row) -> Row:
    return a._replace(calls=a.calls + b.calls, seconds=a.seconds + b.seconds, amount=a.amount + b.amount)


def hooked_sites(rows: Iterable[Row], steps: int) -> list[tuple[str, Site]]:
    return [(row.phase, site_of(row, steps)) for row in rows if row.file or row.through]


def samples_of(process: dict[str, Any]) -> list[Sampled]:
    """None where the sampler did not run."""
    return [Sampled(*line) for line in (process["samples"] or {}).get("lines", [])]


def batch_share(lines: list[Sampled]) -> float:
    """Of the samples in plain Python: those in functions that make batches."""
    python = [line for line in lines if line.phase == "python"]
    total = sum(line.seen for line in python)
    return sum(line.seen for line in python if line.batches) / total if total else 0.0


def sampled_sites(lines: list[Sampled], milliseconds: dict[str, float]) -> list[tuple[str, Site]]:
    """Lines by their share of the samples of a phase; `milliseconds` are those before batches are moved."""
    found = []
    for phase in SAMPLED:
        samples = [line for line in lines if line.phase == phase]
        total = sum(line.seen for line in samples)
        for line in sorted(samples, key=lambda line: -line.seen)[:MOST]:
            if line.seen >= max(LEAST_SEEN, LEAST * total):
                ms = milliseconds.get(phase, 0.0) * line.seen / total
                found.append(("data_wait" if line.batches else phase, make_site(*line[1:4], ms=ms)))
    return found
