"""A thread that looks where the main thread is, every few milliseconds: lines, stacks, and who makes the batches."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from .batch_makers import makes_batches  # noqa: TID252
from .load import Load  # noqa: TID252
from .places import PROBE, USER, kind_of, short  # noqa: TID252
from .recording import Recording  # noqa: TID252

INTERVAL = 0.005
MANY = 500  # samples, which say what there is to say: those that follow come RARER times as seldom
RARER = 10
COST = 0.01  # of the time, at most: samples get rarer when they are dear
WRITE_EVERY = 2.0  # seconds
STACKS = 3000
DEPTH = 40
INLINE = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")
SWITCH = 0.0005  # seconds that the main thread may keep the interpreter from the sampler

Line = tuple[str, str, int, str, bool]  # phase, file, line, function, whether it makes batches
Stack = tuple[str, tuple[tuple[int, int], ...]]  # phase, and frames: the id of their code, and the line


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
        self.folded: Counter[Stack] = Counter()
        self._new: Counter[Line] = Counter()
        self._new_folded: Counter[Stack] = Counter()
        self._labels: dict[Stack, tuple[str, list[CodeType]]] = {}
        self._steps = 0
        self._patience: float | None = None  # the script's own switch interval, while ours is set
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self.stacks and self._patience is None and self.samples < MANY and sys.getswitchinterval() > SWITCH:
            # With the usual 5 ms most samples fall where the main thread lets go by itself, as in torch.tensor(rows),
            # and none on the two milliseconds of json.loads before it. It costs 1% of a step of 60 ms.
            self._patience = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="headrace-probe")
        self._thread.start()

    def stop(self) -> None:
        """Until the next start; what was seen is kept."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._stopping.set()
            self._thread.join(1.0)

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as error:  # the interpreter may be going away
            self.recording.miss("samples", error)

    def _loop(self) -> None:
        due = perf_counter() + WRITE_EVERY
        pause = self.interval
        while not self._stopping.wait(pause):
            if self.recording.torch is None and not self.recording.forked:
                continue
            began = perf_counter()
            if self.stacks:
                self._sample()
                if self.samples >= MANY:
                    self._slow_down()
                pause = max(self.interval, (perf_counter() - began) / COST)
            if began >= due:
                self.load.read(self.recording.forked or self.recording.steps.count > self.recording.steps.warmup)
                self.write()
                now = perf_counter()
                due = now + max(WRITE_EVERY, (now - began) / COST)

    def _slow_down(self) -> None:
        self.interval = RARER * INTERVAL
        if self._patience is not None and sys.getswitchinterval() <= SWITCH:  # unless the script has chosen another
            sys.setswitchinterval(self._patience)
        self._patience = None

    def _sample(self) -> None:
        recording = self.recording
        frame = sys._current_frames().get(recording.clock.thread)
        if recording.steps.count != self._steps:
            self._keep()
        frames = _frames(frame)
        phase = recording.clock.stack[-1]
        if not frames or (phase == "python" and frames[0] is not frame):
            return  # in the probe itself, whose time is not the script's
        if phase == "python" and recording.evaluating:
            phase = "evaluation"
        user = next((entry for entry in frames if kind_of(entry.f_code.co_filename) is USER), None)
        if user is not None:
            batches = phase == "python" and makes_batches(recording, frames)
            self._new[phase, user.f_code.co_filename, user.f_lineno, _function(user), batches] += 1
        self._note_stack(phase, frames)

    def _note_stack(self, phase: str, frames: list[FrameType]) -> None:
        """Labels are made once; a code object's own hash goes through all of its bytes, so its id stands for it."""
        stack = phase, tuple([(id(entry.f_code), entry.f_lineno) for entry in frames])
        if stack not in self._labels:
            if len(self._labels) >= STACKS:
                return
            self._labels[stack] = _folded(phase, frames), [entry.f_code for entry in frames]  # kept: so are their ids
        self._new_folded[stack] += 1

    def _keep(self) -> None:
        """Samples count once their step has ended, and warm-up does not; what follows the last step never counts."""
        steps = self.recording.steps
        if self._steps >= min(steps.warmup, 1):
            self.samples += sum(self._new.values())
            self.lines.update(self._new)
            self.folded.update(self._new_folded)
        self._new, self._new_folded = Counter(), Counter()
        self._steps = steps.count

    def as_dict(self) -> dict[str, Any]:
        return {
            "interval": self.interval,
            "samples": self.samples,
            "lines": [[*line, count] for line, count in list(self.lines.items())],
            "stacks": [[self._labels[stack][0], count] for stack, count in self.folded.most_common(400)],
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


def _function(frame: FrameType) -> str:
    """Its name; what is written inside of a function, such as [... for ...], counts for that function."""
    while frame.f_code.co_name in INLINE and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_name


def _folded(phase: str, frames: list[FrameType]) -> str:
    return ";".join([phase, *(_label(entry.f_code, entry.f_lineno) for entry in reversed(frames))])


def _label(code: CodeType, line: int) -> str:
    return f"{code.co_name} ({short(code.co_filename)}:{line})".replace(";", ",")
