"""What the page of a run is told: curves in as many points as it can show, texts, messages, settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headrace.dashboard.downsample import view
from headrace.dashboard.live import LiveRun
from headrace.dashboard.preview import COLUMNS
from headrace.dashboard.state import EVAL, METRIC, SHARE, Placed, RunState
from headrace.training.run_settings import settings_of

NAMES = (*COLUMNS, "train_loss_min", "train_loss_max")
SAMPLES, MESSAGES = 30, 50
NEW = 2000  # rows in one message of the stream; more are merged
CHECKPOINT = re.compile(r"step-(\d{8,})")
SYSTEM = ("device", "parameters", "peak_flops", "tokens_per_step", "tokenizer_sha256")


def run_answer(run: LiveRun, points: int, first: int | None = None, last: int | None = None) -> dict[str, Any]:
    """All but the summary and the diagnosis."""
    with run.lock:
        state = run.state
        return {
            "cursor": run.cursor(),
            "full": run.full,
            "columns": columns(state, *state.steps.rows_between(first, last), points),
            "evals": evals(state, *state.evals.rows_between(first, last), points),
            "samples": [placed.said for placed in state.samples][-SAMPLES:],
            "messages": [placed.said for placed in state.messages][-MESSAGES:],
            "checkpoints": checkpoints(run.folder),
            "config": settings_of(run.folder, state.about),
            "system": {name: state.about[name] for name in SYSTEM if state.about.get(name) is not None},
            "mix": state.mix.as_dict(),
            "resumes": list(state.resumes),
        }


def news(run: LiveRun, place: int) -> dict[str, Any] | None:
    """What was said behind a place of the file; None if nothing was."""
    with run.lock:
        state = run.state
        if state.end <= place:
            return None
        return {
            "cursor": run.cursor(),
            "columns": columns(state, state.steps.rows_behind(place), len(state.steps), NEW),
            "evals": evals(state, state.evals.rows_behind(place), len(state.evals), NEW),
            "samples": _behind(state.samples, place)[-SAMPLES:],
            "messages": _behind(state.messages, place)[-MESSAGES:],
            "checkpoints": checkpoints(run.folder),
        }


def columns(state: RunState, low: int, high: int, points: int) -> dict[str, Any]:
    """Every column of the same length, with null where there is no value."""
    found = view(state.steps, state.levels, low, high, points)
    nothing = [None] * len(found["steps"])
    return {
        "steps": found["steps"],
        **{name: found.get(name, nothing) for name in NAMES},
        "shares": _under(found, SHARE),
        "metrics": _under(found, METRIC),
    }


def evals(state: RunState, low: int, high: int, points: int) -> dict[str, Any]:
    found = view(state.evals, state.eval_levels, low, high, points)
    nothing = [None] * len(found["steps"])
    return {"steps": found["steps"], **{name: found.get(name, nothing) for name in EVAL}}


def checkpoints(folder: Path) -> list[int]:
    """The steps of those that are on the disk."""
    try:
        found = [CHECKPOINT.fullmatch(path.name) for path in (folder / "checkpoints").iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for match in found if match)


def _under(found: dict[str, list[Any]], prefix: str) -> dict[str, list[Any]]:
    return {name.removeprefix(prefix): values for name, values in found.items() if name.startswith(prefix)}


def _behind(said: Any, place: int) -> list[dict[str, Any]]:
    placed: list[Placed] = list(said)
    return [one.said for one in placed if one.offset > place]
