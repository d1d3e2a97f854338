"""Events as TensorBoard files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.errors import MissingDependency
from headrace.training.scalars import scalars

FLUSH_SECONDS = 30  # so long may a number take to be seen


class TensorboardLog:
    """Files are written by TensorBoard's own thread.

    The numbers of an interval go as one record: the training thread spends 0.14 ms on it, and 0.95 ms with a call of
    add_scalar for each.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter

            summary: Any = importlib.import_module("tensorboard.compat.proto.summary_pb2").Summary  # has no types
        except ImportError as error:
            raise MissingDependency("tensorboard", "train", "Writing TensorBoard files") from error
        self._open, self._summary, self._folder = SummaryWriter, summary, folder
        self._writer: Any = None
        self._sample = (-1, 0)  # step, and how many samples of it there were

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "run":
            self._begin(event)
        if self._writer is None:
            return
        if found := scalars(event):
            values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in found.items()]
            self._writer.file_writer.add_summary(self._summary(value=values), event["step"])
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
