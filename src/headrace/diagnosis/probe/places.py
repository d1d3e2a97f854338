"""Whose line it was: the nearest frame of the user's own code, past torch, other libraries and the probe."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType

USER, LIBRARY, TORCH, PROBE = "user", "library", "torch", "probe"
HERE = os.path.dirname(os.path.abspath(__file__))
HEADRACE = os.path.dirname(os.path.dirname(HERE))
STDLIB = tuple({sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")})
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

FRAMEWORKS = {  # whose file the training loop stands in: who that is
    "transformers/trainer.py": "transformers",
    "lightning/pytorch/": "lightning",
    "pytorch_lightning/": "lightning",
}

_kinds: dict[str, str] = {}


def kind_of(filename: str) -> str:
    kind = _kinds.get(filename)
    if kind is None:
        kind = _kinds[filename] = _classify(filename)
    return kind


def _classify(filename: str) -> str:
    if filename.startswith(HERE):
        return PROBE
    if f"{os.sep}torch{os.sep}" in filename and any(part in filename for part in INSTALLED):
        return TORCH
    if filename.startswith(("<", HEADRACE + os.sep, *STDLIB)) or any(part in filename for part in INSTALLED):
        return LIBRARY
    return USER


def short(filename: str) -> str:
    """A library's file as its users know it: transformers/trainer.py."""
    for part in (*INSTALLED, *STDLIB):
        if part in filename:
            return filename.rpartition(part)[2]
    return os.path.basename(filename)


def framework_of(filename: str) -> str:
    name = short(filename).replace(os.sep, "/")
    return next((framework for start, framework in FRAMEWORKS.items() if name.startswith(start)), "")


def caller(depth: int) -> FrameType | None:
    """The frame so many calls above who asks; none where C calls, as for a traceback or at exit."""
    frame: FrameType | None = sys._getframe().f_back
    for _ in range(depth):
        frame = frame.f_back if frame is not None else None
    return frame


def place(frame: FrameType | None) -> tuple[str, int, str, str]:
    """File, line and function of the user's code, and the library's line that it went through."""
    through = ""
    while frame is not None:
        code = frame.f_code
        kind = kind_of(code.co_filename)
        if kind is USER:
            return code.co_filename, frame.f_lineno, code.co_name, through
        if kind is LIBRARY and not through:
            through = f"{short(code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return "", 0, "", through
