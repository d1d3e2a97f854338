"""The examples run as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace import TokenStore

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_run_here() -> None:
    of_the_guides = ["train_digitalocean.py", "train_slimpajama.py"]  # tests/cli/test_original_commands.py runs these
    assert [path.name for path in sorted(EXAMPLES.glob("*.py"))] == ["prepare_and_read.py", *of_the_guides]


@pytest.mark.parametrize("times", [1, 2])
def test_prepare_and_read(tmp_path: Path, times: int) -> None:
    """The second time it finds the dataset already there."""
    for _ in range(times):
        output = run("prepare_and_read.py", tmp_path / "stdlib", "--max-chunks", 100)
    store = TokenStore(tmp_path / "stdlib")
    assert len(store) >= 100
    assert f"{len(store)} chunks hold {len(store) * 1024} of {store.total_tokens} tokens" in output
    assert f"the first ids: {store[0][:8].tolist()}" in output
    assert f"at 4096 tokens a chunk: {store.total_tokens // 4096} chunks" in output
    assert f"set aside for validation: {store.metadata.val_documents} documents" in output


def test_prepare_and_read_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "set aside for validation" in run("prepare_and_read.py", "--max-chunks", 5)
    assert list(tmp_path.iterdir()) == []
