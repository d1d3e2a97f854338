"""Corpora and ways to run prepare, for the tests of the pipeline and of the command line."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def write_jsonl(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    return path


def make_texts(count: int, start: int = 0) -> list[str]:
    return [
        f"Document {i}. " + " ".join(f"word{(i * j) % 977}" for j in range(1, 5 + i % 60))
        for i in range(start, start + count)
    ]


def content(folder: Path) -> dict[str, str]:
    """Every file of a dataset with its hash, the hidden work folder left out."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".headrace" not in path.parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three files, of which one is compressed and one is split by byte range."""
    import zstandard

    folder = tmp_path / "corpus"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", make_texts(3000))
    plain = write_jsonl(folder / "b.jsonl", make_texts(500, 3000))
    (folder / "b.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    plain.unlink()
    (folder / "c.txt").write_text("A text file is a document.\n" * 50)
    return folder


@pytest.fixture
def headrace() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command as a user runs it."""

    def run(*args: object, check: int | None = 0, **options: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "headrace", *map(str, args)], capture_output=True, text=True, timeout=300, **options
        )
        assert check is None or done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
