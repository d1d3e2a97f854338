"""History: the curves of a run out of its events, as columns, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.training.columns import Columns

# Column -> field of the event.
STEP = {
    "steps": "step",
    "tokens": "tokens",
    "train_loss": "loss",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "tokens_per_second": "tokens_per_second",
    "mfu": "mfu",
    "data_wait_share": "data_wait_share",
    "max_wait": "max_wait",
    "seconds_per_step": "seconds_per_step",
    "cpu": "cpu",
    "memory": "memory",
    "gpu": "gpu",
    "gpu_memory": "gpu_memory",
    "skipped": "skipped",
}
EVAL = {"val_steps": "step", "val_loss": "val_loss", "perplexity": "perplexity", "accuracy": "accuracy"}
MAX_POINTS = 8192  # two to four times what a screen can show; metrics_history.json stays below about 2 MB
MAX_SAMPLES = 2048
NOT_KEPT = {"t", "kind", "config", "extra"}  # of a run's event; run.json and events.jsonl have them


class History:
    """What happened so far. Steps that a run went back over are forgotten, so no step is there twice."""

    def __init__(self, *, max_points: int = MAX_POINTS, max_samples: int = MAX_SAMPLES) -> None:
        self.run: dict[str, Any] = {}
        self.steps = Columns(STEP, max_points, last=("steps", "tokens"))
        self.evals = Columns(EVAL, max_points, last=EVAL)
        self.samples: list[dict[str, Any]] = []
        self._max_samples = max_samples

    @classmethod
    def from_events(cls, events: Iterable[Mapping[str, Any]]) -> History:
        history = cls()
        for event in events:
            history.add(event)
        return history

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event.get("kind")
        if kind == "run":
            self._begin(event)
        elif kind == "step":
            self.steps.add(_step_point(event))
        elif kind == "eval":
            self.evals.add({column: finite(event.get(name)) for column, name in EVAL.items()})
        elif kind == "sample":
            self._add_sample(event)

    def _begin(self, event: Mapping[str, Any]) -> None:
        """A run begins at a step, or goes on from it: what came later in an earlier try does not count."""
        self.run = {name: value for name, value in event.items() if name not in NOT_KEPT}
        step = event.get("step") or 0
        self.steps.drop_after(step)
        self.evals.drop_after(step)
        self.samples = [sample for sample in self.samples if sample["step"] <= step]

    def _add_sample(self, event: Mapping[str, Any]) -> None:
        self.samples.append({name: event.get(name) for name in ("step", "prompt", "expected", "predicted")})
        if len(self.samples) > self._max_samples:
            kept = set(sorted({sample["step"] for sample in self.samples})[::-2])
            self.samples = [sample for sample in self.samples if sample["step"] in kept]

    def as_dict(self) -> dict[str, Any]:
        """metrics_history.json: every column a list, with null where there is no value."""
        steps = self.steps.as_dict()
        shares, metrics = _taken_out(steps, "share/"), _taken_out(steps, "metric/")
        return {"run": self.run, **steps, "shares": shares, "metrics": metrics, **self.evals.as_dict()}


def _step_point(event: Mapping[str, Any]) -> dict[str, Any]:
    seconds = event.get("seconds") or 0.0
    told = {**event, "seconds_per_step": seconds / max(1, event.get("steps") or 1)}
    shares = {f"share/{name}": share for name, share in span_shares(event).items()}
    metrics = {f"metric/{name}": finite(value) for name, value in (event.get("metrics") or {}).items()}
    return {column: finite(told.get(name)) for column, name in STEP.items()} | shares | metrics


def _taken_out(columns: dict[str, list[Any]], prefix: str) -> dict[str, list[Any]]:
    return {name.removeprefix(prefix): columns.pop(name) for name in list(columns) if name.startswith(prefix)}


def span_shares(event: Mapping[str, Any]) -> dict[str, float]:
    """Seconds per span as parts of their sum."""
    spans = {name: value for name, value in (event.get("spans") or {}).items() if finite(value) is not None}
    total = sum(spans.values())
    return {name: value / total for name, value in spans.items()} if total > 0 else {}


def finite(value: Any) -> Any:
    """The number, or None for one that a curve cannot show."""
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None
