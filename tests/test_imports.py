"""The public surface, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headrace

HEAVY = {
    "torch",
    "pyarrow",
    "rich",
    "ray",
    "numpy",
    "huggingface_hub",
    "tokenizers",
    "sentencepiece",
    "tiktoken",
    "starlette",
    "plotly",
}

RUN_HELP = """
import runpy, sys
sys.argv = ["headrace", "--help"]
try:
    runpy.run_module("headrace", run_name="__main__")
except SystemExit as end:
    assert end.code in (0, None), end.code
"""


def heavy_modules_after(code: str) -> set[str]:
    code += "\nimport sys; print('MODULES', *sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return HEAVY.intersection(result.stdout.rpartition("MODULES")[2].split())


def test_the_check_itself_sees_a_heavy_import() -> None:
    assert heavy_modules_after("import numpy") == {"numpy"}


def test_import_headrace_is_light() -> None:
    assert heavy_modules_after("import headrace") == set()


def test_help_is_light() -> None:
    assert heavy_modules_after(RUN_HELP) == set()


def test_public_names_are_frozen() -> None:
    assert headrace.__all__ == [
        "HeadraceError",
        "LiveText",
        "Loader",
        "Mixture",
        "PrepareConfig",
        "Run",
        "TokenStore",
        "TrainConfig",
        "Trainer",
        "__version__",
        "build_model",
        "check_parity",
        "diagnose",
        "load_tokenizer",
        "open_source",
        "prepare",
    ]
    assert dir(headrace) == sorted(headrace.__all__)


@pytest.mark.parametrize("name", headrace.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(headrace, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'headrace' has no attribute 'nothing'"):
        _ = headrace.nothing
