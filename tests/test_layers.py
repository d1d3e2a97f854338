"""Imports go only downwards. The table is the one in ARCHITECTURE.md; this test is what keeps it true."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "headrace"

# Highest first. A part may import the parts on lower lines, and nothing else of headrace.
LAYERS = [
    ["__init__", "__main__"],
    ["cli"],
    ["demo"],
    ["dashboard"],
    ["diagnosis"],
    ["pipeline", "training"],
    ["loading", "models"],
    ["sources", "storage", "packing"],
    ["tokenizers"],  # below storage, because a dataset decodes with the tokenizer it carries
    ["files", "telemetry", "pages", "locks", "hub"],
    ["errors", "documents", "version"],
]
DEPTH = {part: depth for depth, line in enumerate(LAYERS) for part in line}

TORCH_PARTS = {"models", "training", "diagnosis", "demo"}
TORCH_FILES = {"loading/device.py"} | {
    f"loading/adapters/{name}.py" for name in ("dataset", "layouts", "lightning", "trainer")
}
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc"}
MAX_LINES = 400


def imported_modules(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import, wherever it stands: in a function or under TYPE_CHECKING counts too.

    `from a import b` gives "a.b", because b may be a module; only the leading parts are looked at.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]).rstrip(".")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def part_of(path: PurePosixPath) -> str:
    return path.parts[0].removesuffix(".py")


def problems(name: str, source: str) -> list[str]:
    """What is wrong with the file of this name, relative to src/headrace."""
    path = PurePosixPath(name)
    part = part_of(path)
    found = []
    if part not in DEPTH:
        return [f"{name}: {part!r} has no line in the layer table: give it one here and in ARCHITECTURE.md"]
    if named := NAMELESS.intersection(piece.removesuffix(".py").strip("_") for piece in path.parts):
        found.append(f"{name}: {named.pop()!r} says nothing: name the thing")
    if (lines := len(source.splitlines())) > MAX_LINES:
        found.append(f"{name}: {lines} lines, more than {MAX_LINES}: it wants to be two files")
    package = ".".join(["headrace", *path.parts[:-1]])
    for line, module in imported_modules(ast.parse(source), package):
        if trouble := import_problem(name, part, module):
            found.append(f"{name}:{line}: {trouble}")
    return found


def import_problem(name: str, part: str, module: str) -> str | None:
    top, *below = module.split(".")
    if top == "torch" and part not in TORCH_PARTS and name not in TORCH_FILES:
        return "imports torch, and has to work without it"
    if top != "headrace" or below in (["__version__"], ["__file__"]) or below[:1] == [part]:
        return None
    target = below[0] if below and below[0] in DEPTH else "__init__"
    if DEPTH[target] > DEPTH[part]:
        return None
    way = "beside it" if DEPTH[target] == DEPTH[part] else "above it"
    return f"{part} imports {module}, which is {way}"


def source_files() -> list[str]:
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", source_files())
def test_file_keeps_to_its_layer(name: str) -> None:
    assert problems(name, (PACKAGE / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("storage/reader.py", "from headrace.pipeline import prepare"),
        ("storage/reader.py", "import headrace.cli.main"),
        ("storage/reader.py", "from headrace import pipeline"),
        ("storage/reader.py", "from headrace import prepare"),
        ("storage/reader.py", "import headrace"),
        ("storage/reader.py", "from ..sources import jsonl"),
        ("storage/reader.py", "from .. import sources"),
        ("storage/reader.py", "def f():\n    from headrace.packing import bestfit"),
        ("tokenizers/base.py", "from headrace.storage import reader"),
        ("storage/reader.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import headrace.packing"),
        ("storage/reader.py", "import importlib\nimportlib.import_module('headrace.sources')"),
        ("errors.py", "from headrace.documents import DocumentBatch"),
        ("files.py", "from headrace.storage.index import Index"),
        ("pipeline/local.py", "from headrace.training import loop"),
        ("pipeline/local.py", "def f():\n    import torch"),
        ("loading/order.py", "from torch.utils.data import DataLoader"),
        ("storage/utils.py", ""),
        ("storage/_helpers/index.py", ""),
        ("surprise.py", ""),
        ("storage/reader.py", "x = 1\n" * (MAX_LINES + 1)),
    ],
)
def test_bad_file_is_reported(name: str, source: str) -> None:
    assert len(problems(name, source)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("pipeline/local.py", "from headrace.storage import TokenStore\nfrom headrace.pipeline.plan import Plan"),
        ("pipeline/local.py", "from . import plan\nfrom ..storage.index import Index\nfrom ..errors import Busy"),
        ("storage/writer.py", "from headrace import __version__\nfrom headrace.errors import StoreError"),
        ("cli/prepare.py", "def run():\n    from headrace.pipeline import prepare\n    import rich.live"),
        ("models/transformer.py", "import torch.nn as nn"),
        ("loading/device.py", "import torch"),
        ("storage/reader.py", "x = 1\n" * MAX_LINES),
    ],
)
def test_good_file_passes(name: str, source: str) -> None:
    assert problems(name, source) == []


def test_report_names_line_and_direction() -> None:
    assert problems("storage/reader.py", "import os\nimport headrace.cli") == [
        "storage/reader.py:2: storage imports headrace.cli, which is above it"
    ]
    assert problems("storage/reader.py", "from headrace.sources import jsonl") == [
        "storage/reader.py:1: storage imports headrace.sources.jsonl, which is beside it"
    ]
