"""The files that the probes of one run left, and who was who: the process that steps, other ranks, workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

Process = dict[str, Any]  # as probe/dump.py writes it


HELD_UP = 0.10  # of a step


class Family(NamedTuple):
    main: Process | None  # the one whose steps are reported
    ranks: list[Process]  # others that step
    workers: list[Process]  # children of the main process that load its data
    others: list[Process]
    missing: list[str]


def read_family(folder: Path) -> Family:
    processes, missing = [], [f"the probe: {path.read_text()}" for path in sorted(folder.glob("failed-*.txt"))]
    for path in sorted(folder.glob("process-*.json")):
        try:
            processes.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            missing.append(f"{path.name} cannot be read: {error}")
    return arrange(processes, missing)


def arrange(processes: list[Process], missing: list[str]) -> Family:
    stepping = sorted((one for one in processes if steps_of(one)), key=_first)
    main = slowest(stepping) if stepping else None
    ranks = [one for one in stepping if one is not main and one["rank"] is not None]
    workers = [one for one in processes if main and one["parent"] == main["pid"] and not steps_of(one)]
    known = {one["pid"] for one in (*([main] if main else []), *ranks, *workers)}
    others = [one for one in processes if one["pid"] not in known]
    said = [text for one in processes for text in one["missing"]]
    return Family(main, ranks, workers, others, list(dict.fromkeys([*missing, *said])))


def steps_of(process: Process) -> int:
    return int(process["steps"]["count"])


def slowest(stepping: list[Process]) -> Process:
    """Rank 0, unless it waits for another: ranks meet in the backward pass, and who comes last waits least there."""
    first = stepping[0]
    ranks = [one for one in stepping if one["rank"] is not None]
    last = max(ranks, key=outside_of_backward, default=first)
    step = fold_of(first)["seconds"] / fold_of(first)["steps"]
    return last if outside_of_backward(last) - outside_of_backward(first) > HELD_UP * step else first


def outside_of_backward(process: Process) -> float:
    """Seconds of a step."""
    fold = fold_of(process)
    return float(fold["seconds"] - fold["phases"].get("backward", 0.0)) / int(fold["steps"])


def _first(process: Process) -> tuple[int, int]:
    """Rank 0, or whoever made most steps."""
    return int(process["rank"] or 0), -steps_of(process)


def fold_of(process: Process) -> dict[str, Any]:
    """The steps to report, added up: without warm-up if there are others."""
    steps = process["steps"]
    if steps["late"]["steps"] >= 2:
        return dict(steps["late"])
    if steps["early"]["steps"]:
        return added(steps["early"], steps["late"])
    return dict(steps["first"])


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    phases = {name: one["phases"].get(name, 0.0) + other["phases"].get(name, 0.0) for name in _names(one, other)}
    sums = {name: one[name] + other[name] for name in ("steps", "seconds", "cpu", "tokens")}
    return {**sums, "phases": phases, "sites": [*one["sites"], *other["sites"]]}


def _names(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys([*one["phases"], *other["phases"]]))


def timeline_of(process: Process, steps: int) -> tuple[int, list[dict[str, float]]]:
    """Milliseconds per phase of the steps that are reported, and the number of the first of them."""
    first = max(0, steps_of(process) - steps)
    rows = process["steps"]["timeline"][first:]
    return first + 1, [{name: seconds * 1e3 for name, seconds in row.items()} for row in rows]


def label_of(process: Process) -> str:
    return f"rank {process['rank']}" if process["rank"] is not None else f"process {process['pid']}"
