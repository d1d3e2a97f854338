"""Facts: what the list needs of one run, from the ends of its files, and later only from what is new in them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headrace.dashboard.downsample import thinned
from headrace.dashboard.follow import Follower, Replaced, read_head, read_tail
from headrace.dashboard.lines import Line, decode_line, decode_whole
from headrace.dashboard.preview import EVENTS, METRICS

RUN = "run.json"
HEAD, TAIL = 64 * 1024, 16 * 1024
WHOLE = 128 * 1024  # a log that is read from the beginning
SPARK = 60
RECENT = 512  # losses behind the history
PACE = 50  # intervals that make the rate

Stamp = tuple[int, int, int] | None


class Curve(msgspec.Struct):
    """metrics_history.json, as far as a row of the list needs it."""

    run: dict[str, Any] = {}
    steps: list[int] = []
    train_loss: list[float | None] = []
    val_steps: list[int] = []
    val_loss: list[float | None] = []


_decode_curve = msgspec.json.Decoder(Curve).decode


class Facts:
    """Reads nothing until `look` is called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe: dict[str, Any] = {}
        self._stamps: dict[str, Stamp] = {}
        self._curve = Curve()
        self.waits = False  # for its history to be read
        self._start_over()

    def _start_over(self) -> None:
        self.about: dict[str, Any] = {}
        self.last, self.evaluated, self.end, self.error = Line(), Line(), Line(), Line()
        self.started: float | None = None
        self.updated: float | None = None
        self._best: list[tuple[int, float]] = []  # each better than those before it
        self._recent: deque[tuple[int, float]] = deque(maxlen=RECENT)
        self._pace: deque[tuple[float, int]] = deque(maxlen=PACE)
        self._follower: Follower | None = None

    def look(self, *, curve: bool = True) -> bool:
        """Read what changed; whether anything did. Without `curve` the history waits for the next time."""
        changed = [self._changed(EVENTS) and self._read_events(), self._changed(RUN) and self._read_recipe()]
        if curve and self._changed(METRICS):
            changed.append(self._read_curve())
        self.waits = not curve and self._stamps.get(METRICS, False) != _stamp(self.folder / METRICS)
        return any(changed)

    @property
    def steps(self) -> int | None:
        """Of the whole run: as it was begun, or gone on with, the last time."""
        for told in (self.about.get("steps"), self._curve.run.get("steps"), self._train("steps")):
            if isinstance(told, int):
                return told
        return None

    @property
    def step(self) -> int:
        told = [line.step or 0 for line in (self.last, self.evaluated, self.end)]
        return max(*told, self.about.get("step") or 0)

    @property
    def best(self) -> float | None:
        known = [loss for loss in self._validated() if loss is not None]
        return min([*known, *(loss for _, loss in self._best)], default=None)

    @property
    def val_loss(self) -> float | None:
        if self.evaluated.val_loss is not None:
            return self.evaluated.val_loss
        return next((loss for loss in reversed(self._validated()) if loss is not None), None)

    @property
    def seconds_per_step(self) -> float | None:
        """Of late, evaluations included."""
        steps = sum(count for _, count in self._pace)
        return sum(seconds for seconds, _ in self._pace) / steps if steps else None

    def told(self, name: str) -> Any:
        """What the run says of itself."""
        return self.about.get(name, self._curve.run.get(name))

    def spark(self) -> list[float]:
        steps = self._curve.steps
        kept = bisect_right(steps, self._valid)
        later = [loss for step, loss in self._recent if not kept or step > steps[kept - 1]]
        earlier = np.array(self._curve.train_loss[:kept], np.float64)
        return thinned(np.concatenate([earlier, np.array(later, np.float64)]), SPARK)

    def _validated(self) -> list[float | None]:
        return self._curve.val_loss[: bisect_right(self._curve.val_steps, self._valid)]

    @property
    def _valid(self) -> int:
        """The step up to which the history holds: one that went back is behind its history until that is written."""
        begun = self.about.get("step") or 0
        return self.step if (self._curve.run.get("step") or 0) == begun else begun

    def _train(self, name: str) -> Any:
        train = self.recipe.get("train")
        return train.get(name) if isinstance(train, dict) else None

    def _changed(self, name: str) -> bool:
        stamp = _stamp(self.folder / name)
        if self._stamps.get(name, False) == stamp:
            return False
        self._stamps[name] = stamp
        return True

    def _read_recipe(self) -> bool:
        try:
            self.recipe = msgspec.json.decode((self.folder / RUN).read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            self.recipe = {}
        return True

    def _read_curve(self) -> bool:
        try:
            self._curve = _decode_curve((self.folder / METRICS).read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            self._curve = Curve()
        return True

    def _read_events(self) -> bool:
        try:
            if self._follower is None:
                self._read_ends()
            else:
                self._read_on()
        except Replaced:
            self._start_over()
            self._read_events()
        except OSError:
            self._start_over()
        return True

    def _read_ends(self) -> None:
        path = self.folder / EVENTS
        start = 0
        if path.stat().st_size > WHOLE:
            self._take(_beginning(read_head(path, HEAD)))
            tail, start = read_tail(path, TAIL)
            self._take(tail)
            start += len(tail)
        self._follower = Follower(path, start)
        self._read_on()

    def _read_on(self) -> None:
        assert self._follower is not None
        while chunk := self._follower.read():
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        for text in chunk.split(b"\n"):
            line = decode_line(text) if text else None
            if line is not None:
                self._take_line(line, text)

    def _take_line(self, line: Line, text: bytes) -> None:
        if line.t is not None:
            self.started = line.t if self.started is None else self.started
            self.updated = line.t
        if line.kind == "step" and line.step is not None:
            self.last = line
            if line.loss is not None:
                self._recent.append((line.step, line.loss))
            if line.seconds is not None and line.steps:
                self._pace.append((line.seconds, line.steps))
        elif line.kind == "eval":
            self.evaluated = line
            if line.val_loss is not None and all(line.val_loss < loss for _, loss in self._best[-1:]):
                self._best.append((line.step or 0, line.val_loss))
        elif line.kind == "run":
            self._begin(line, text)
        elif line.kind == "end":
            self.end = line
        elif line.kind == "error":
            self.error = line

    def _begin(self, line: Line, text: bytes) -> None:
        """A run that goes on has not ended, and has not failed yet."""
        self.about = decode_whole(text)
        step = line.step or 0
        self.end, self.error = Line(), Line()
        self._recent = deque((known for known in self._recent if known[0] <= step), maxlen=RECENT)
        self._best = [known for known in self._best if known[0] <= step]
        self._pace.clear()
        if (self.last.step or 0) > step:
            self.last = Line()
        if (self.evaluated.step or 0) > step:
            self.evaluated = Line()


def _beginning(head: bytes) -> bytes:
    """The lines up to the one in which a run says what it is; the first one if none does."""
    at = head.find(b'"kind":"run"')
    return head[: head.find(b"\n", max(at, 0)) + 1]


def _stamp(path: Path) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
