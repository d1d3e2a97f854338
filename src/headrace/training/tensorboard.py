"""Events as TensorBoard files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.errors import MissingDependency
from headrace.training.scalars import scalars

FLUSH_SECONDS = 30  # so long may a number take to be seen


class TensorboardLog:
    """Costs the training thread 0.1 ms per number and interval; files are written by TensorBoard's own thread."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingDependency("tensorboard", "train", "Writing TensorBoard files") from error
        self._open, self._folder = SummaryWriter, folder
        self._writer: Any = None
        self._sample = (-1, 0)  # step, and how many samples of it there were

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "run":
            self._begin(event)
        if self._writer is None:
            return
        for tag, value in scalars(event).items():
            self._writer.add_scalar(tag, value, event["step"])
        if kind == "sample":
            self._add_sample(event)
        if kind in ("eval", "end"):
            self._writer.flush()

    def close(self, *, failed: bool = False) -> None:
        if self._writer is not None:
            self._writer.close()

    def _begin(self, event: Mapping[str, Any]) -> None:
        """TensorBoard forgets the steps that the run goes back over."""
        self.close()
        step = event.get("step") or 0
        self._writer = self._open(str(self._folder), purge_step=step + 1, flush_secs=FLUSH_SECONDS)
        told = {name: value for name, value in event.items() if name not in ("t", "kind")}
        self._writer.add_text("run", _code(json.dumps(told, indent=2, default=str)), step + 1)

    def _add_sample(self, event: Mapping[str, Any]) -> None:
        step, number = event["step"], self._sample[1] + 1 if self._sample[0] == event["step"] else 1
        self._sample = (step, number)
        parts = (f"**{name}**\n\n{_code(event.get(name) or '')}" for name in ("prompt", "expected", "predicted"))
        self._writer.add_text(f"sample/{number}", "\n\n".join(parts), step)


def _code(text: str) -> str:
    """Indented, which Markdown shows as it is whatever is in it."""
    return "\n".join("    " + line for line in text.splitlines())
