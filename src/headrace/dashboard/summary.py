"""A run as one row of the list."""

from __future__ import annotations

import time
from typing import Any

from headrace.dashboard.facts import Facts
from headrace.locks import Locks
from headrace.training.run_state import LOCK, judged
from headrace.training.titles import data_title, model_title

WAITING = 0.05  # of the time, spent waiting for data, that is worth a word


def summarise(name: str, facts: Facts, locks: Locks, now: float | None = None) -> dict[str, Any]:
    now = time.time() if now is None else now
    model, last = _model(facts), facts.last
    status = _status(facts, locks, now)
    names = data_names(facts)
    return {
        "name": name,
        "title": _title(facts, model, names),
        "model": model.get("name"),
        "size": model.get("size"),
        "data": names,
        "status": status,
        "step": facts.step,
        "steps": facts.steps,
        "tokens": last.tokens or facts.evaluated.tokens or facts.end.tokens,
        "loss": last.loss if last.loss is not None else facts.end.loss,
        "val_loss": facts.val_loss,
        "best_val_loss": facts.best,
        "tokens_per_second": last.tokens_per_second,
        "mfu": last.mfu,
        "data_wait_share": last.data_wait_share,
        "device": facts.told("device"),
        "parameters": facts.told("parameters"),
        "started": facts.started,
        "updated": facts.updated,
        "eta_seconds": _eta(facts) if status == "running" else None,
        "spark": facts.spark(),
        "problem": _problem(facts, status),
    }


def data_names(facts: Facts) -> list[str]:
    told = facts.told("datasets")
    if isinstance(told, str):
        return [told]
    return [str(name) for name in told] if isinstance(told, list) else []


def _model(facts: Facts) -> dict[str, Any]:
    """From its events, or from the recipe of one that has none yet."""
    told = facts.told("model") or (facts.recipe.get("recipe") or {}).get("model")
    if isinstance(told, dict):
        return told
    return {"name": str(told)} if told else {}


def _title(facts: Facts, model: dict[str, Any], names: list[str]) -> str:
    """transformer small, 25.3 M parameters, on web, code"""
    told = {"model": model, "parameters": facts.told("parameters"), "datasets": names}
    data = data_title(told)
    return model_title(told) + (f", on {data}" if data else "")


def _status(facts: Facts, locks: Locks, now: float) -> str:
    return judged(
        end=(facts.end.step or 0) if facts.end.kind else None,
        steps=facts.steps or 0,
        error=bool(facts.error.kind),
        nonfinite=_not_a_number(facts),
        held=locks.holds(facts.folder / LOCK),
        silent=None if facts.updated is None else now - facts.updated,
        interval=facts.last.seconds or 0.0,
    )


def _not_a_number(facts: Facts) -> bool:
    """It said so in its last interval, and was told to stop at that."""
    config = facts.about.get("config")
    stops = isinstance(config, dict) and config.get("nonfinite", "stop") == "stop"
    return bool(facts.last.skipped) and stops


def _eta(facts: Facts) -> float | None:
    pace = facts.seconds_per_step
    if pace is None or not facts.steps:
        return None
    return round(max(0, facts.steps - facts.step) * pace, 1)


def _problem(facts: Facts, status: str) -> str | None:
    if status == "failed":
        if facts.error.text:
            return facts.error.text
        return f"The loss or the gradient was no number before step {facts.step:,}; the run stopped there."
    waiting = facts.last.data_wait_share
    if status in ("running", "finished") and waiting is not None and waiting >= WAITING:
        return f"{waiting:.0%} of the time is spent waiting for data."
    return None
