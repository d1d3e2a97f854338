"""A run at once, however long it is: out of its bounded history and the end of its events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headrace.dashboard.follow import read_head, read_tail
from headrace.dashboard.lines import PHASE_OF, decode_line
from headrace.dashboard.state import EVAL, METRIC, SAMPLES, SHARE, STEP, Placed, RunState

EVENTS, METRICS, TEXTS = "events.jsonl", "metrics_history.json", "text_samples.json"
HEAD, TAIL = 64 * 1024, 512 * 1024
COLUMNS = (*STEP, "seconds_per_step")
Values = list[float | None]


class Past(msgspec.Struct):
    """metrics_history.json, as far as curves need it."""

    run: dict[str, Any] = {}
    steps: list[int] = []
    val_steps: list[int] = []
    shares: dict[str, Values] = {}
    metrics: dict[str, Values] = {}
    train_loss: Values = []
    learning_rate: Values = []
    grad_norm: Values = []
    tokens_per_second: Values = []
    mfu: Values = []
    seconds_per_step: Values = []
    cpu: Values = []
    memory: Values = []
    gpu: Values = []
    gpu_memory: Values = []
    skipped: Values = []
    val_loss: Values = []
    perplexity: Values = []
    accuracy: Values = []


def preview(folder: Path) -> RunState:
    """Rows of the past stand at no place of the file, so that nobody takes them for new ones."""
    state = RunState()
    events = folder / EVENTS
    begin_with_head(state, events)
    _take_past(state, read_past(folder / METRICS), _texts(folder / TEXTS))
    tail, start = read_tail(events, TAIL)
    state.take(_without_known(state, tail), start)
    return state


def begin_with_head(state: RunState, events: Path) -> None:
    """What the run says of itself; its first rows come from elsewhere."""
    for text in read_head(events, HEAD).split(b"\n"):
        if b'"kind":"run"' in text:
            state.take(text + b"\n", 0)
            return


def read_past(path: Path) -> Past:
    """An empty one if there is none, or none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Past)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Past()


def _texts(path: Path) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])[-SAMPLES:]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []


def _take_past(state: RunState, past: Past, texts: list[dict[str, Any]]) -> None:
    if past.run:
        state.about = {**state.about, **past.run}
    found: dict[str, Values] = {name: getattr(past, name) for name in COLUMNS}
    found |= {SHARE + PHASE_OF.get(name, name): values for name, values in past.shares.items()}
    found |= {METRIC + name: values for name, values in past.metrics.items()}
    _append(state.steps, past.steps, found)
    _append(state.evals, past.val_steps, {name: getattr(past, name) for name in EVAL})
    state.samples.extend(Placed(0, text) for text in texts)


def _append(table: Any, steps: list[int], columns: dict[str, Values]) -> None:
    if not steps or (np.diff(steps) <= 0).any():
        return
    arrays = {name: np.array(values, np.float32) for name, values in columns.items() if len(values) == len(steps)}
    known = {name: values for name, values in arrays.items() if not np.isnan(values).all()}
    table.append(np.array(steps, np.int64), np.zeros(len(steps), np.int64), known)


def _without_known(state: RunState, tail: bytes) -> bytes:
    """Blank out what the history has too, so that the lines behind it keep their places."""
    texts = max((sample.said.get("step") or 0 for sample in state.samples), default=-1)
    known = {"step": state.steps.last_step, "eval": state.evals.last_step, "sample": texts}
    kept = []
    for text in tail.split(b"\n")[:-1]:
        line = decode_line(text)
        if line is not None and line.kind == "run":
            known = {kind: min(last, line.step or 0) for kind, last in known.items()}
        there = line is not None and line.step is not None and line.step <= known.get(line.kind, -1)
        kept.append(b" " * len(text) if there else text)
    return b"".join(text + b"\n" for text in kept)
