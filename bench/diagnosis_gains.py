"""Whether the first advice of `headrace diagnose run` brings what it promised: scripts with a fault, before and after.

The scripts are those of tests/diagnosis/scripts, the changed ones lie in diagnosis_fixed/ under the same names. Each is
run four times a round, before and after in turns: under the probe, for what it predicts and what `headrace diagnose
compare` says, and without it, for what the change is worth to somebody who only trains.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diagnosis_overhead import HERE, environment

SCRIPTS = HERE.parent / "tests" / "diagnosis" / "scripts"
FIXED = HERE / "diagnosis_fixed"
TOKENIZER = HERE.parent / "src" / "headrace" / "tokenizers" / "data" / "headrace-32k.json"
HEADRACE = str(Path(sys.executable).with_name("headrace"))
ON_ONE_CORE = ("too_many_workers", "too_many_threads")  # as in the tests
NOTHING = {"rule": "none", "advice": "none", "speedup": 1.0}  # a round in which nothing was found
WARM = 3  # steps left out, as many as `diagnose run` leaves out
TIMEOUT = 300


def names() -> list[str]:
    return sorted(path.stem for path in FIXED.glob("*.py"))


def measure_gains(scripts: list[str], rounds: int, work: Path) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in scripts}
    for name in scripts:
        for state in ("before", "after"):
            (work / name / state).mkdir(parents=True, exist_ok=True)
        plain_step(name, "after", work)  # prepares, is not counted
    with contextlib.suppress(KeyboardInterrupt):  # what is there by then counts
        for number, name in itertools.product(range(rounds), scripts):
            one = once(name, work, ("before", "after") if number % 2 == 0 else ("after", "before"))
            found[name].append(one)
            told = f"{one['predicted']:.2f}x predicted, {one['reached']:.2f}x reached, {one['verdict']}"
            print(f"round {number + 1}: {name}: {told}", file=sys.stderr, flush=True)
    return sorted((summary(name, runs) for name, runs in found.items() if runs), key=lambda row: -row["predicted"])


def once(name: str, work: Path, order: tuple[str, ...]) -> dict[str, Any]:
    steps, reports = {}, {}
    with cores(name):
        for state in order:
            reports[state] = diagnosed(name, state, work)
            steps[state] = plain_step(name, state, work)
    fix = next(iter(json.loads(reports["before"].read_text())["fixes"]), NOTHING)
    compared = json.loads(
        output([HEADRACE, "diagnose", "compare", *(str(reports[state]) for state in ("before", "after")), "--json"])
    )
    return {
        "rule": fix["rule"], "advice": fix["advice"].splitlines()[0], "predicted": fix["speedup"],
        "before_ms": steps["before"][0], "after_ms": steps["after"][0],
        "reached": steps["before"][0] / steps["after"][0], "reached_cpu": steps["before"][1] / steps["after"][1],
        "compare": {key: compared[key] for key in ("measured", "predicted", "came_true", "by_tokens")},
        "verdict": compared["verdict"],
    }  # fmt: skip


@contextlib.contextmanager
def cores(name: str) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    if name in ON_ONE_CORE:
        os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def command(name: str, state: str, work: Path) -> list[str]:
    script = (SCRIPTS if state == "before" else FIXED) / f"{name}.py"
    return [str(script), *([str(TOKENIZER)] if name.startswith("tokenize") else []), str(work / name / state)]


def diagnosed(name: str, state: str, work: Path) -> Path:
    path = work / name / f"{state}.json"
    words = [HEADRACE, "diagnose", "run", "--json", "--", sys.executable, *command(name, state, work)]
    path.write_text(output(words))
    return path


def plain_step(name: str, state: str, work: Path) -> tuple[float, float]:
    """Milliseconds of a step without the probe, by the wall and by the CPU of the main process: the mean behind the
    warm-up, as `diagnose run` takes it."""
    path = work / name / "steps.json"
    output([sys.executable, str(HERE / "diagnosis_clock.py"), *command(name, state, work)], path)
    ends = json.loads(path.read_text())
    wall, cpu = (
        (last - first) * 1e3 / (len(ends) - WARM) for first, last in zip(ends[WARM - 1], ends[-1], strict=True)
    )
    return wall, cpu


def output(words: list[str], steps: Path | None = None) -> str:
    done = subprocess.run(
        words, env=environment() | ({"DIAGNOSIS_STEPS": str(steps)} if steps else {}), capture_output=True, text=True,
        timeout=TIMEOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    predicted = statistics.median(one["predicted"] for one in runs)
    reached = statistics.median(one["reached"] for one in runs)
    shares = [one["compare"]["came_true"] for one in runs if one["compare"]["came_true"] is not None]
    rules = [one["rule"] for one in runs]
    return {
        "script": name,
        "rule": statistics.mode(rules),
        "advice": next(one["advice"] for one in runs if one["rule"] == statistics.mode(rules)),
        **{key: statistics.median(one[key] for one in runs) for key in ("before_ms", "after_ms")},
        "predicted": predicted,
        "reached": reached,
        "share": (reached - 1) / (predicted - 1) if predicted > 1 else None,
        "reached_cpu": statistics.median(one["reached_cpu"] for one in runs),
        "by_compare": statistics.median(one["compare"]["measured"] for one in runs),
        "share_by_compare": statistics.median(shares) if shares else None,
        "runs": runs,
    }
