"""Run: the folder of a run as something to look at, finished or not. Needs no torch, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.telemetry import read_events
from headrace.training.history import History, finite
from headrace.training.loss_range import LossRange
from headrace.training.run_settings import FACTS, settings_of
from headrace.training.run_state import run_state
from headrace.training.titles import data_title, model_title

EVENTS = "events.jsonl"
POINTS = 4096  # of a curve
TOLD = 500  # messages that are kept, the newest


class Run:
    """`Run("runs/NAME")`: the config, the curves, the texts and what happened, as of now. `reload()` looks again."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.reload()

    def reload(self) -> Run:
        self._clear()
        for event in read_events(self.path / EVENTS):
            self._add(event)
        if not self.about and not (self.path / FACTS).is_file():
            raise UsageError(_no_run(self.path))
        return self

    def _clear(self) -> None:
        self._history, self.loss_range = History(max_points=POINTS), LossRange()
        self.about: dict[str, Any] = {}  # the newest event of kind run
        self.last: dict[str, Any] = {}  # of kind step
        self.evaluated: dict[str, Any] = {}
        self.best: tuple[float, int] | None = None  # validation loss and step
        self.messages: list[dict[str, Any]] = []
        self.checkpoints: list[int] = []
        self.resumes: list[int] = []
        self.skipped = 0  # steps that were left out, because their loss was no number
        self.seconds = 0.0  # spent in steps, those that were done again too
        self.started: float | None = None
        self._newest: dict[str, Any] | None = None

    def _add(self, event: dict[str, Any]) -> None:
        kind = event.get("kind")
        self._history.add(event)
        self.loss_range.add(event)
        self._newest = event if kind != "message" else self._newest or event
        self.started = self.started or event.get("t")
        if kind == "run":
            self._begin(event)
        elif kind == "step":
            self.last = event
            self.seconds += finite(event.get("seconds")) or 0.0
            self.skipped += event.get("skipped") or 0
        elif kind == "eval":
            self._evaluate(event)
        elif kind == "checkpoint" and event.get("step") not in self.checkpoints[-1:]:
            self.checkpoints.append(event.get("step") or 0)
        elif kind in ("message", "error"):
            self.messages = [*self.messages[-TOLD + 1 :], {"t": event.get("t"), "text": str(event.get("text", ""))}]

    def _begin(self, event: dict[str, Any]) -> None:
        if self.about:
            self.resumes.append(event.get("step") or 0)
        self.about = event
        self.checkpoints = [step for step in self.checkpoints if step <= (event.get("step") or 0)]

    def _evaluate(self, event: dict[str, Any]) -> None:
        self.evaluated = event
        loss = finite(event.get("val_loss"))
        if loss is not None and (self.best is None or loss < self.best[0]):
            self.best = (loss, event.get("step") or 0)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def title(self) -> str:
        """transformer small, 25.3 M parameters, on python-stdlib"""
        data = data_title(self.about)
        return model_title(self.about) + (f", on {data}" if data else "")

    @property
    def config(self) -> dict[str, Any]:
        """Every setting under its dotted name, such as train.lr."""
        return settings_of(self.path, self.about)

    @property
    def history(self) -> dict[str, Any]:
        """The curves as columns, as in metrics_history.json."""
        return self._history.as_dict()

    @property
    def samples(self) -> list[dict[str, Any]]:
        """Step, prompt, expected and predicted text; the newest last."""
        return list(self._history.samples)

    @property
    def status(self) -> str:
        """running, finished, stopped, failed or empty"""
        stops = (self.about.get("config") or {}).get("nonfinite", "stop") == "stop"
        interval = finite(self.last.get("seconds")) or 0.0
        return run_state(self.path, last=self._newest, steps=self.steps, interval=interval, stop_at_nonfinite=stops)

    @property
    def step(self) -> int:
        """The last one that is known; after going back, the one it went back to."""
        known = [
            self.about.get("step") or 0,
            *self._history.steps["steps"][-1:],
            *self._history.evals["val_steps"][-1:],
        ]
        return int(max(known))

    @property
    def steps(self) -> int:
        return int(self.about.get("steps") or 0)

    @property
    def updated(self) -> float | None:
        """When it last said something, in unix seconds."""
        return (self._newest or {}).get("t")

    def __repr__(self) -> str:
        loss, val = finite(self.last.get("loss")), finite(self.evaluated.get("val_loss"))
        parts = [
            f"Run({str(self.path)!r}: {self.title}, {self.status}",
            f"step {self.step:,} of {self.steps:,}",
            f"loss {loss:.4f}" if loss is not None else "",
            f"validation loss {val:.4f}" if val is not None else "",
        ]
        return ", ".join(part for part in parts if part) + ")"

    def _repr_html_(self) -> str:
        from headrace.training.run_charts import run_html

        return run_html(self)


def _no_run(path: Path) -> str:
    if not path.exists():
        return f"{path}: there is no such folder. Name the folder of a run, such as runs/NAME."
    return (
        f"{path} has no {EVENTS} and no {FACTS}: it is not the folder of a run. `headrace train --out DIR` makes one."
    )
