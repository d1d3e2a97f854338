"""Lines are the user's, not those of libraries in between."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headrace.diagnosis.probe.places import LIBRARY, PROBE, TORCH, USER, kind_of, place


def function_in(filename: str, source: str, **names: Any) -> Callable[..., Any]:
    scope: dict[str, Any] = dict(names)
    exec(compile(source, filename, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def here() -> tuple[str, int, str, str]:
    return place(sys._getframe(1))


def test_nearest_line_of_the_user_and_the_library_in_between(tmp_path: Path) -> None:
    inner = function_in("/env/site-packages/torch/_tensor.py", "def f():\n    return here()", here=here)
    library = function_in("/env/site-packages/hf/trainer.py", "def f():\n    return inner()", inner=inner)
    user = function_in("/home/me/train.py", "\n\ndef f():\n    return library()", library=library)
    assert user() == ("/home/me/train.py", 4, "f", "hf/trainer.py:2")


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/home/me/train.py", USER),
        ("/env/lib/python3.11/site-packages/torch/nn/modules/module.py", TORCH),
        ("/env/lib/python3.11/site-packages/transformers/trainer.py", LIBRARY),
        ("/home/me/torch/train.py", USER),
        ("<frozen importlib._bootstrap>", LIBRARY),
        (sys.modules["json"].__file__ if "json" in sys.modules else "<json>", LIBRARY),
        (sys.modules[place.__module__].__file__, PROBE),
    ],
)
def test_kinds_of_files(file: str, kind: str) -> None:
    assert kind_of(file) == kind


def test_no_frame_has_no_place() -> None:
    frame: FrameType | None = None
    assert place(frame) == ("", 0, "", "")
