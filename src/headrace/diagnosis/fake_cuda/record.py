"""Recording: the waits of the CPU for the GPU, by line, and in which step of the optimizer."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from headrace.diagnosis.fake_cuda.result import Record, Sync

TORCH = str(Path(torch.__file__).parent)
OWN = str(Path(__file__).parent)
HEADRACE = str(Path(__file__).parents[2])
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {HEADRACE})
# Files of torch that only pass calls on: they say nothing about who asked for a value.
PLUMBING = ("_ops.py", "_tensor.py", "overrides.py", "_compile.py", "utils/_contextlib.py", "utils/_device.py",
            "utils/_python_dispatch.py", "utils/_pytree.py", "optim/optimizer.py")  # fmt: skip
AROUND = ("/runpy.py", "/warnings.py")
PLUMBING_FOLDERS = ("_dynamo/", "_subclasses/", "_prims", "_refs/", "_decomp/", "_library/")


class EnoughSteps(BaseException):
    """Ends the script; not an Exception, so that no `except Exception` of the script keeps it going."""


class Recorder:
    """Counts syncs by line and step. A step ends with a step of the optimizer that stepped first, so that a script
    with two optimizers has not twice the steps."""

    def __init__(self, *, mode: str, stop_after: int | None = None) -> None:
        self.record = Record(mode=mode, torch=str(torch.__version__))
        self._stop_after = stop_after
        self._leader: Any = None
        self._muted = 0
        self._by_place: dict[tuple[str, str, int, str], Sync] = {}
        self.calling = ""  # the function of torch that is being called

    def sync(self, kind: str) -> None:
        if self._muted:
            return
        user, through = place(sys._getframe(1))
        file, line = user.f_code.co_filename, user.f_lineno
        key = (kind, file, line, through)
        if key not in self._by_place:
            function = user.f_code.co_name
            self._by_place[key] = Sync(kind=kind, file=file, line=line, function=function, through=through, counts={})
            self.record.syncs.append(self._by_place[key])
        counts = self._by_place[key].counts
        counts[self.record.steps] = counts.get(self.record.steps, 0) + 1

    @contextmanager
    def muted(self) -> Iterator[None]:
        """For what the stand-ins do themselves."""
        self._muted += 1
        try:
            yield
        finally:
            self._muted -= 1

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._leader = self._leader or optimizer
        if optimizer is not self._leader:
            return
        self.record.steps += 1
        if self._stop_after is not None and self.record.steps >= self._stop_after:
            self.record.stopped = True
            raise EnoughSteps


def place(frame: FrameType) -> tuple[FrameType, str]:
    """The user's frame, and the line between it and the sync that says most: a library's, else torch's."""
    frames = list(_python_frames(frame))
    outside = [f for f in frames if not f.f_code.co_filename.startswith(TORCH)]
    user = next((f for f in outside if not f.f_code.co_filename.startswith(LIBRARIES)), None)
    user = user or (outside or frames)[0]
    beneath = frames[: frames.index(user)]
    between = [f for f in beneath if f in outside] or [f for f in beneath if not _is_plumbing(f)]
    return user, _named(between[0]) if between else ""


def _python_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Innermost first, without the stand-ins and what Python adds when it runs a script or shows a warning."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", OWN)) and not name.endswith(AROUND):
            yield frame
        frame = frame.f_back


def _is_plumbing(frame: FrameType) -> bool:
    name = frame.f_code.co_filename.removeprefix(TORCH).removeprefix("/")
    return name in PLUMBING or name.startswith(PLUMBING_FOLDERS)


def _named(frame: FrameType) -> str:
    """torch/amp/grad_scaler.py:352, as one would look it up."""
    path = Path(frame.f_code.co_filename)
    for root in (Path(TORCH).parent, *map(Path, LIBRARIES), Path(HEADRACE).parent):
        if path.is_relative_to(root):
            return f"{path.relative_to(root)}:{frame.f_lineno}"
    return f"{path.name}:{frame.f_lineno}"
