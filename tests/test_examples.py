"""The examples run as a user runs them."""

from __future__ import annotations

import re
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
    here = ["prepare_and_read.py", "train_the_fast_way.py", "train_the_slow_way.py"]
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*here, *of_the_guides}


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


def test_the_slow_way_and_the_fast_way_train_on_as_many_tokens(tmp_path: Path) -> None:
    slow = run("train_the_slow_way.py", "--tokens", 512)
    fast = run("train_the_fast_way.py", tmp_path / "stdlib", "--tokens", 4096)
    assert re.search(r"the slow way: (512|[5-9]\d\d) tokens in .* tokens/s", slow)
    assert "the fast way: 4096 tokens in" in fast
    losses = [float(loss) for loss in re.findall(r"step \d+: loss ([\d.]+)", fast)]
    assert losses[1] < losses[0]


def test_prepare_and_read_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "set aside for validation" in run("prepare_and_read.py", "--max-chunks", 5)
    assert list(tmp_path.iterdir()) == []
