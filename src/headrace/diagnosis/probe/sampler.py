"""A thread that looks where the main thread is, every few milliseconds: lines, stacks, and who makes the batches."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from time import perf_counter, sleep
from types import FrameType
from typing import Any

from .load import Load  # noqa: TID252
from .places import LIBRARY, PROBE, TORCH, USER, kind_of, short  # noqa: TID252
from .recording import Recording  # noqa: TID252

INTERVAL = 0.005
COST = 0.01  # of the time, at most: samples get rarer when they are dear
WRITE_EVERY = 1.0  # seconds
STACKS = 3000
DEPTH = 40
# Functions that run between two steps and make no batch.
NO_BATCHES = re.compile(
    r"log|metric|report|print|plot|save|checkpoint|eval|valid|generate|sample_text|schedul|lr", re.I
)

Line = tuple[str, str, int, str, bool]  # phase, file, line, function, whether it makes batches


class Sampler:
    def __init__(
        self, recording: Recording, write: Callable[[], None], *, interval: float = INTERVAL, stacks: bool = True
    ) -> None:
        self.recording = recording
        self.write = write
        self.interval = interval
        self.stacks = stacks
        self.load = Load()
        self.samples = 0
        self.lines: Counter[Line] = Counter()
        self.folded: Counter[str] = Counter()
        self._new: Counter[Line] = Counter()
        self._new_folded: Counter[str] = Counter()
        self._steps = 0

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="headrace-probe").start()

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as error:  # the interpreter may be going away
            self.recording.miss("samples", error)

    def _loop(self) -> None:
        due = perf_counter() + WRITE_EVERY
        pause = self.interval
        while True:
            sleep(pause)
            if self.recording.torch is None and not self.recording.forked:
                continue
            began = perf_counter()
            if self.stacks:
                self._sample()
                pause = max(self.interval, (perf_counter() - began) / COST)
            if began >= due:
                self.load.read(self.recording.forked or self.recording.steps.count > self.recording.steps.warmup)
                self.write()
                now = perf_counter()
                due = now + max(WRITE_EVERY, (now - began) / COST)

    def _sample(self) -> None:
        recording = self.recording
        frame = sys._current_frames().get(recording.clock.thread)
        if recording.steps.count != self._steps:
            self._keep()
        frames = list(_frames(frame))
        if not frames:
            return
        phase = recording.clock.stack[-1]
        user = next((entry for entry in frames if kind_of(entry.f_code.co_filename) is USER), None)
        if user is not None:
            code = user.f_code
            batches = phase == "python" and self._makes_batches(frames, user)
            self._new[phase, code.co_filename, user.f_lineno, code.co_name, batches] += 1
        if len(self.folded) < STACKS:
            self._new_folded[";".join([phase, *(_label(entry) for entry in reversed(frames))])] += 1

    def _keep(self) -> None:
        """Samples count once their step has ended, and warm-up does not; what follows the last step never counts."""
        steps = self.recording.steps
        if self._steps >= min(steps.warmup, 1):
            self.samples += sum(self._new.values())
            self.lines.update(self._new)
            self.folded.update(self._new_folded)
        self._new, self._new_folded = Counter(), Counter()
        self._steps = steps.count

    def _makes_batches(self, frames: list[FrameType], user: FrameType) -> bool:
        """A function of the user's that the loop calls before the model, and that is not about something else."""
        if self.recording.computing or self.recording.evaluating or not self.recording.loop:
            return False
        if kind_of(frames[0].f_code.co_filename) is TORCH and "/utils/data/" not in frames[0].f_code.co_filename:
            return False
        called = [
            entry.f_code
            for entry in frames
            if kind_of(entry.f_code.co_filename) is USER and entry.f_code not in self.recording.loop
        ]
        if not called:
            return _reads(frames[0])
        return any(code.co_flags & inspect.CO_GENERATOR for code in called) or not any(
            NO_BATCHES.search(code.co_name) for code in called
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "interval": self.interval,
            "samples": self.samples,
            "lines": [[*line, count] for line, count in list(self.lines.items())],
            "stacks": self.folded.most_common(400),
            "load": self.load.as_dict(),
        }


def _frames(frame: FrameType | None) -> list[FrameType]:
    """Leaf first, without the probe's own."""
    found: list[FrameType] = []
    while frame is not None and len(found) < DEPTH:
        if kind_of(frame.f_code.co_filename) is not PROBE:
            found.append(frame)
        frame = frame.f_back
    return found


def _reads(leaf: FrameType) -> bool:
    """Straight in the loop: numpy, files and parsers make batches."""
    name = leaf.f_code.co_filename
    words = ("numpy", "json/", "pathlib", "codecs", "gzip", "csv", "pyarrow", "pandas", "random.py")
    return kind_of(name) is LIBRARY and any(word in name for word in words)


def _label(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({short(code.co_filename)}:{frame.f_lineno})".replace(";", ",")
