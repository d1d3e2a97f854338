"""Which of the script's own functions make batches, as get_batch does: nothing of torch tells, so their place does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from types import CodeType, FrameType

from .places import LIBRARY, TORCH, USER, kind_of  # noqa: TID252
from .recording import Recording  # noqa: TID252

# Functions that run between two steps and make no batch.
NO_BATCHES = re.compile(
    r"log|metric|report|print|plot|save|checkpoint|eval|valid|generate|sample_text|schedul|lr", re.I
)
# Between the forward and the backward pass a function makes a batch only if it says so: others compute the loss.
BATCHES = re.compile(r"batch|data|load|fetch|prefetch|collate|read_|next_", re.I)
READERS = ("numpy", "json/", "pathlib", "codecs", "gzip", "csv", "pyarrow", "pandas", "random.py")


def makes_batches(recording: Recording, frames: list[FrameType]) -> bool:
    """Frames, the innermost first: a function of the user's that the loop calls, and not about something else."""
    if recording.evaluating or not recording.loop:
        return False
    leaf = frames[0].f_code.co_filename
    called = called_by_the_loop(recording, frames)
    if recording.computing:
        return _named_so(called)
    if not called:
        return reads(leaf)
    if kind_of(leaf) is TORCH and "/utils/data/" not in leaf and not _named_so(called):
        return False
    return any(code.co_flags & inspect.CO_GENERATOR for code in called) or not any(
        NO_BATCHES.search(code.co_name) for code in called
    )


def called_by_the_loop(recording: Recording, frames: Iterable[FrameType]) -> list[CodeType]:
    return [
        entry.f_code
        for entry in frames
        if kind_of(entry.f_code.co_filename) is USER and entry.f_code not in recording.loop
    ]


def _named_so(called: list[CodeType]) -> bool:
    return any(BATCHES.search(code.co_name) for code in called) and not any(
        NO_BATCHES.search(code.co_name) for code in called
    )


def inside_one(recording: Recording, frame: FrameType | None) -> bool:
    """Whether this frame is in a function that makes a batch, by its name."""
    called = []
    while frame is not None and frame.f_code not in recording.loop:
        if kind_of(frame.f_code.co_filename) is USER:
            called.append(frame.f_code)
        frame = frame.f_back
    return _named_so(called)


def reads(filename: str) -> bool:
    """Straight in the loop: numpy, files and parsers make batches."""
    return kind_of(filename) is LIBRARY and any(word in filename for word in READERS)
