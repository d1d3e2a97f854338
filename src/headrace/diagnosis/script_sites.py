"""Lines of the script, from what the hooks counted and what the sampler saw."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from typing import Any

from headrace.diagnosis.report import Site

SAMPLED = ("python", "data_wait", "logging", "evaluation")  # phases whose lines the hooks do not all know
LEAST = 0.01  # of a phase; lines below it are left out
MOST = 12  # lines of a phase

# phase, what, file, line, function, through, calls, seconds, amount
Row = list[Any]


def site_of(row: Row, steps: int) -> Site:
    _, what, file, line, function, through, calls, seconds, _ = row
    return make_site(file, line, function, through, what=what, calls=calls / steps, ms=seconds * 1e3 / steps)


def make_site(file: str, line: int, function: str, through: str = "", **values: Any) -> Site:
    if not file and through:  # a library that nobody's script called
        file, _, number = through.rpartition(":")
        line, through = int(number), ""
    if through and values.get("what"):
        values["what"] += f" ({through})"
    return Site(file=file, line=line, function=function, code=linecache.getline(file, line).strip(), **values)


def site_at(place: list[Any] | None, **values: Any) -> Site | None:
    return make_site(*place, **values) if place and (place[0] or place[3]) else None


def merged(rows: Iterable[Row]) -> list[Row]:
    """One row per line and call."""
    by_key: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        values = by_key.setdefault(tuple(row[:6]), [0.0, 0.0, 0.0])
        for index in range(3):
            values[index] += row[6 + index]
    return [[*key, *values] for key, values in by_key.items()]


def hooked_sites(rows: Iterable[Row], steps: int) -> list[tuple[str, Site]]:
    return [(row[0], site_of(row, steps)) for row in rows if row[2] or row[5]]


def batch_share(lines: list[list[Any]]) -> float:
    """Of the samples in plain Python: those in functions that make batches."""
    python = [line for line in lines if line[0] == "python"]
    total = sum(line[5] for line in python)
    return sum(line[5] for line in python if line[4]) / total if total else 0.0


def sampled_sites(lines: list[list[Any]], milliseconds: dict[str, float]) -> list[tuple[str, Site]]:
    """Lines by their share of the samples of a phase; `milliseconds` are those before batches are moved."""
    found = []
    for phase in SAMPLED:
        samples = [line for line in lines if line[0] == phase]
        total = sum(line[5] for line in samples)
        for _, file, line, function, batches, count in sorted(samples, key=lambda entry: -entry[5])[:MOST]:
            if count >= LEAST * total:
                site = make_site(file, line, function, ms=milliseconds.get(phase, 0.0) * count / total)
                found.append(("data_wait" if batches else phase, site))
    return found
