"""Recorder: writes down what a run says, for people, for tools and for the run that goes on later."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from headrace.errors import Interrupted, MissingDependency
from headrace.files import disk_full_named, write_atomically
from headrace.telemetry import EventLog, encode_json, read_events
from headrace.training.history import History
from headrace.training.plots import draw_curves
from headrace.training.tensorboard import TensorboardLog
from headrace.training.wandb_log import WandbLog

EVENTS, METRICS, SAMPLES = "events.jsonl", "metrics_history.json", "text_samples.json"
TENSORBOARD, CURVES = "tensorboard", "curves.png"
REST = 100  # a write that took a second is followed by none for so many: files cost a run 1% at most


class Sink(Protocol):
    """Another place that events go to. One that fails is left out, and the run goes on."""

    def __call__(self, event: Mapping[str, Any]) -> None: ...

    def close(self, *, failed: bool = False) -> None: ...


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)


class Recorder:
    """A listener for a Trainer. As a context it leaves whole files behind however the run ends.

    Every event is one line of events.jsonl at once. metrics_history.json and text_samples.json are written after an
    evaluation and its samples, whole or not at all; their size is bounded (History merges old points), and so is the
    time that goes into them (REST). A resumed run builds its history out of events.jsonl.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        tensorboard: bool = True,
        wandb_project: str | None = None,
        run_name: str | None = None,
        curves: bool = True,
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        self.folder, self._report, self._curves = Path(folder), report, curves
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sinks: dict[str, Sink] = {}
        if wandb_project is not None:  # asked for by name, so a missing package is an error and comes first
            self._sinks["Weights & Biases"] = WandbLog(self.folder, project=wandb_project, run_name=run_name)
        self.history = History.from_events(read_events(self.folder / EVENTS))
        self._log = EventLog(self.folder / EVENTS)
        self._due, self._closed = False, False
        self._rest_until = 0.0
        if tensorboard:
            self._add_tensorboard()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = kind is not None and not issubclass(kind, (Interrupted, KeyboardInterrupt))
        if failed and not self._closed:
            with suppress(OSError):  # what ended the run may be the full disk
                self._log.write("error", text=str(error) or type(error).__name__)
        self.close(failed=failed)

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        with disk_full_named(self.folder / EVENTS):
            self._log.write_event(event)
        self.history.add(event)
        for name in list(self._sinks):
            self._pass_on(name, event)
        if kind in ("eval", "sample"):
            self._due = True
        elif kind == "end" or (self._due and time.monotonic() >= self._rest_until):
            self.write_files()

    def write_files(self) -> None:
        """metrics_history.json and text_samples.json as things stand now."""
        began = time.monotonic()
        write_atomically(self.folder / METRICS, encode_json(self.history.as_dict()) + b"\n")
        write_atomically(self.folder / SAMPLES, encode_json(self.history.samples) + b"\n")
        ended = time.monotonic()
        self._due, self._rest_until = False, ended + REST * (ended - began)

    def close(self, *, failed: bool = False) -> None:
        """Write and draw what there is. The second time it does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self.history.run:
                self.write_files()
                self._draw()
        finally:
            for sink in self._sinks.values():
                sink.close(failed=failed)
            self._log.close()

    def say(self, text: str) -> None:
        """To the person and to the log."""
        self._log.write("message", text=text)
        self._report(text)

    def _add_tensorboard(self) -> None:
        try:
            self._sinks["TensorBoard"] = TensorboardLog(self.folder / TENSORBOARD)
        except MissingDependency as error:
            self.say(f"{error}. Training goes on without.")

    def _pass_on(self, name: str, event: Mapping[str, Any]) -> None:
        try:
            self._sinks[name](event)
        except Exception as error:  # days of training do not end because of a picture of them
            del self._sinks[name]
            self.say(f"{name} failed and gets no more events: {error!r}. Training goes on; {EVENTS} has everything.")

    def _draw(self) -> None:
        if not self._curves or not len(self.history.steps):
            return
        try:
            draw_curves(self.history.as_dict(), self.folder / CURVES)
        except MissingDependency as error:
            self.say(f"{error}. The numbers are in {self.folder / METRICS}.")
        except Exception as error:  # as above: the run itself went well
            self.say(f"{CURVES} could not be drawn: {error!r}. The numbers are in {self.folder / METRICS}.")
