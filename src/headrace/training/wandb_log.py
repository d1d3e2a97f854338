"""Events to Weights & Biases, where the user has it and asks for it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.errors import MissingDependency
from headrace.training.scalars import scalars

ID_FILE = "wandb_id.txt"


class WandbLog:
    """One run there for one run folder: a resumed run goes on in the same curves.

    The step is a value of its own. W&B's counter only goes up, and here the numbers of an interval come after the
    evaluation at its end, and a resumed run goes back; it would drop both.
    """

    def __init__(self, folder: Path, *, project: str, run_name: str | None = None) -> None:
        try:
            self._wandb: Any = importlib.import_module("wandb")
        except ImportError as error:
            raise MissingDependency("wandb", "wandb", "Logging to Weights & Biases") from error
        self._folder, self._project = folder, project
        self._name = run_name or folder.resolve().name
        self._run: Any = None
        self._samples: list[list[Any]] = []

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "run":
            self._begin(event)
        if self._run is None:
            return
        if kind == "sample":
            self._samples.append([event.get(name) for name in ("step", "prompt", "expected", "predicted")])
        elif self._samples:
            self._send_samples()
        if found := scalars(event):
            self._run.log({"step": event["step"], **found})

    def close(self, *, failed: bool = False) -> None:
        if self._run is not None:
            if self._samples:
                self._send_samples()
            self._run.finish(exit_code=1 if failed else 0)
            self._run = None

    def _begin(self, event: Mapping[str, Any]) -> None:
        config = {name: value for name, value in event.items() if name not in ("t", "kind", "step")}
        self._run = self._wandb.init(
            project=self._project,
            name=self._name,
            id=self._known_id(),
            resume="allow",
            dir=str(self._folder),
            config=config,
            allow_val_change=True,  # a run may be made longer when it goes on
        )
        (self._folder / ID_FILE).write_text(f"{self._run.id}\n", encoding="utf-8")
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def _known_id(self) -> str | None:
        try:
            return (self._folder / ID_FILE).read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None

    def _send_samples(self) -> None:
        """A table cannot grow once it is sent, so each evaluation sends its own."""
        rows, self._samples = self._samples, []
        table = self._wandb.Table(columns=["step", "prompt", "expected", "predicted"], data=rows)
        self._run.log({"step": rows[0][0], "samples": table})
