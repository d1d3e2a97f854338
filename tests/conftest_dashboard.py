"""Runs on disk as the real Recorder and EventLog write them, for the tests of the dashboard."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conftest_events import EVERY, a_run, eval_event, loss_at, run_event, sample_event, step_event
from headrace.telemetry import EventLog
from headrace.training.recorder import Recorder

HOST = "http://127.0.0.1:8765"


def write_run(folder: Path, events: Iterable[Mapping[str, Any]], **recipe: Any) -> Path:
    """A run's folder with everything that a run leaves in it, apart from its checkpoints."""
    with Recorder(folder, tensorboard=False, curves=False) as recorder:
        for event in events:
            recorder(event)
    write_recipe(folder, **recipe)
    return folder


def write_recipe(folder: Path, *, lr: float = 3e-4, **recipe: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "recipe": {"seed": 0, "model": {"name": "ten", "size": "nano"}, **recipe},
        "train": {"lr": lr, "steps": 1000},
    }
    (folder / "run.json").write_bytes(msgspec.json.encode(facts))


def append(folder: Path, *events: Mapping[str, Any]) -> None:
    """As a run that goes on writes them."""
    log = EventLog(folder / "events.jsonl")
    for event in events:
        log.write_event(event)
    log.close()


def recent(events: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same events, said just now."""
    for event in events:
        yield {**event, "t": time.time()}


def rows(first: int, last: int) -> Iterator[dict[str, Any]]:
    """One line for each step, each with a loss of its own; no JSON has a number for some of them."""
    for step in range(first, last + 1):
        loss = None if step % 97 == 0 else 3 + 2 * math.cos(step / 7) + 0.01 * (step % 13)
        yield step_event(step, steps=1, loss=loss, losses=[loss], t=1.0 + step)


__all__ = [
    "EVERY", "HOST", "a_run", "append", "eval_event", "loss_at", "recent", "rows", "run_event", "sample_event",
    "step_event", "write_recipe", "write_run",
]  # fmt: skip
