"""RunState: everything that the lines of a run's events say, as far as a page shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.dashboard.downsample import LEAST, MOST, Levels
from headrace.dashboard.lines import PHASE_OF, Line, decode_line, decode_whole, phase_seconds, sources_of
from headrace.dashboard.mix import MixHistory
from headrace.dashboard.table import Table

F32 = NDArray[np.float32]
SHARE, METRIC = "share/", "metric/"
SAMPLES, MESSAGES, RESUMES = 300, 200, 1000  # kept
MIXES = 64  # rows of a slice whose sources are looked at
STEP = {  # column -> field of the event
    "train_loss": "loss",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "tokens_per_second": "tokens_per_second",
    "mfu": "mfu",
    "cpu": "cpu",
    "memory": "memory",
    "gpu": "gpu",
    "gpu_memory": "gpu_memory",
    "skipped": "skipped",
}
_fields = attrgetter(*STEP.values(), "seconds", "steps")
EVAL = ("val_loss", "perplexity", "accuracy")


class Placed(NamedTuple):
    """Something said at a place of the file."""

    offset: int
    said: dict[str, Any]


class RunState:
    def __init__(self) -> None:
        self.steps, self.evals = Table(), Table()
        self.levels, self.eval_levels = Levels(self.steps), Levels(self.evals)
        self.samples: deque[Placed] = deque(maxlen=SAMPLES)
        self.messages: deque[Placed] = deque(maxlen=MESSAGES)
        self.resumes: deque[int] = deque(maxlen=RESUMES)
        self.mix = MixHistory()
        self.about: dict[str, Any] = {}  # the newest event of kind run
        self.end = 0  # how much of the file has been taken in
        self.went_back = -1  # the newest place at which rows before it were dropped

    @property
    def nbytes(self) -> int:
        return self.steps.nbytes + self.levels.nbytes + self.evals.nbytes

    def take(self, chunk: bytes, start: int) -> None:
        """Whole lines, of which the first begins at `start`."""
        at, rows, offsets = start, list[Line](), list[int]()
        for text in chunk.split(b"\n")[:-1]:
            at += len(text) + 1
            line = decode_line(text)
            if line is None:
                continue
            if line.kind == "step":
                rows.append(line)
                offsets.append(at)
            else:
                self._take_steps(rows, offsets)
                rows, offsets = [], []
                self._take_other(line, text, at)
        self._take_steps(rows, offsets)
        self.end = at

    def _take_steps(self, rows: list[Line], offsets: list[int]) -> None:
        known = [row.step is not None for row in rows]
        if not all(known):
            offsets = [offset for offset, keep in zip(offsets, known, strict=True) if keep]
            rows = [row for row, keep in zip(rows, known, strict=True) if keep]
        if not rows:
            return
        steps = np.array([row.step for row in rows], np.int64)
        self._take_mix(rows)
        if steps[0] > self.steps.last_step and (len(steps) == 1 or (np.diff(steps) > 0).all()):
            self.steps.append(steps, np.array(offsets, np.int64), _columns(rows))
            return
        for row, step, offset in zip(rows, steps, offsets, strict=True):
            self._drop_after(int(step) - 1, offset)  # a step that was there already
            self.steps.append(np.array([step]), np.array([offset]), _columns([row]))

    def _take_mix(self, rows: list[Line]) -> None:
        """Counts are of everything up to a row, so a few rows say it all."""
        if not len(rows[-1].sources):
            return
        stride = -(-len(rows) // MIXES)
        for row in reversed(rows[::-1][::stride]):
            self.mix.add_step(row.step, sources_of(row))

    def _take_other(self, line: Line, text: bytes, at: int) -> None:
        if line.kind == "run":
            self._begin(line, text, at)
        elif line.kind == "eval" and line.step is not None:
            self.evals.drop_after(line.step - 1)
            found = {name: np.array([getattr(line, name)], np.float32) for name in EVAL}
            self.evals.append(np.array([line.step]), np.array([at]), found)
        elif line.kind == "sample":
            said = {"step": line.step, "prompt": line.prompt, "expected": line.expected, "predicted": line.predicted}
            self.samples.append(Placed(at, said))
        elif line.kind in ("message", "error") and line.text:
            self.messages.append(Placed(at, {"t": line.t, "text": line.text}))

    def _begin(self, line: Line, text: bytes, at: int) -> None:
        """A run begins at a step, or goes on from it: what came later in an earlier try does not count."""
        step, again = line.step or 0, bool(self.about)
        self.mix.drop_after(step)
        self.about = decode_whole(text)
        if again:
            self.resumes.append(step)
        self._drop_after(step, at)

    def _drop_after(self, step: int, at: int) -> None:
        dropped = [self.steps.drop_after(step), self.evals.drop_after(step)]
        if any(dropped):
            self.went_back = at
            self.levels.cut()
            self.eval_levels.cut()
        later = [sample for sample in self.samples if (sample.said["step"] or 0) > step]
        for sample in later:
            self.samples.remove(sample)


def _columns(rows: list[Line]) -> dict[str, F32]:
    table = np.array([_fields(row) for row in rows], np.float64)  # None becomes no number
    found = {name: table[:, at].astype(np.float32) for at, name in enumerate(STEP)}
    found["seconds_per_step"] = (table[:, -2] / np.fmax(table[:, -1], 1)).astype(np.float32)
    found = {name: values for name, values in found.items() if not np.isnan(values).all()}
    return found | _extremes(rows) | _shares(rows) | _metrics(rows)


def _extremes(rows: list[Line]) -> dict[str, F32]:
    """Of the steps within each interval; where an interval is one step, its loss says it all."""
    if all(len(row.losses or ()) < 2 for row in rows):
        return {}
    known = [[loss for loss in row.losses or (row.loss,) if loss is not None] for row in rows]
    least = [min(losses, default=None) for losses in known]
    most = [max(losses, default=None) for losses in known]
    return {LEAST: np.array(least, np.float32), MOST: np.array(most, np.float32)}


def _shares(rows: list[Line]) -> dict[str, F32]:
    """Of the time of each row."""
    seconds = _named([phase_seconds(row) for row in rows])
    if not seconds:
        return {}
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.nansum(np.stack(list(seconds.values())), axis=0)
        return {
            SHARE + PHASE_OF.get(name, name): np.where(total > 0, values / total, np.nan).astype(np.float32)
            for name, values in seconds.items()
        }


def _metrics(rows: list[Line]) -> dict[str, F32]:
    named = _named([row.metrics or {} for row in rows])
    return {METRIC + name: values.astype(np.float32) for name, values in named.items()}


def _named(rows: list[dict[str, float | None]]) -> dict[str, NDArray[np.float64]]:
    names: Iterable[str] = rows[0].keys()
    if any(row.keys() != names for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name) for row in rows], np.float64) for name in names}
