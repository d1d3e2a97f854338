"""What lies in a checkpoint: read back bit by bit, and any damage to it noticed."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from xxhash import xxh3_128

from headrace.errors import OutOfSpace, StoreError, UsageError
from headrace.training import checkpoint_files
from headrace.training.checkpoint import Checkpoints
from headrace.training.checkpoint_manifest import encode_manifest, read_manifest

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool]
MANIFEST = {"tokens": 12, "metrics": {"val_loss": 3.5}, "model": {"kind": "gpt", "layers": 2}, "datasets": ["wiki"]}


def save(folder: Path, step: int = 7, **state: Any) -> Path:
    generator = torch.Generator().manual_seed(step)
    model = {f"w.{dtype}": (torch.randn(5, 3, generator=generator) * 9).to(dtype) for dtype in DTYPES}
    model["tied"] = model["w.torch.float32"]
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(step, model, state, manifest=MANIFEST, background=False)
    return folder / f"step-{step:08d}"


def test_every_value_comes_back(tmp_path: Path) -> None:
    state = {"rng": random.getstate(), "array": np.arange(3), "m": torch.randn(3), "t": (1, [0.1, None])}
    save(tmp_path, **state)
    loaded = Checkpoints(tmp_path).at(7)
    assert loaded.state["rng"] == state["rng"]
    assert loaded.state["t"] == state["t"]
    np.testing.assert_array_equal(loaded.state["array"], state["array"])
    assert torch.equal(loaded.state["m"], state["m"])
    generator = torch.Generator().manual_seed(7)
    for dtype in DTYPES:
        weight = loaded.model_state[f"w.{dtype}"]
        assert weight.dtype == dtype
        assert torch.equal(weight, (torch.randn(5, 3, generator=generator) * 9).to(dtype))
    assert loaded.model_state["tied"] is loaded.model_state["w.torch.float32"]


def test_anybody_can_read_the_files(tmp_path: Path) -> None:
    path = save(tmp_path, lr=0.5)
    assert sorted(entry.name for entry in path.iterdir()) == ["checkpoint.json", "model.safetensors", "state.pt"]
    assert set(load_file(path / "model.safetensors")) == {f"w.{dtype}" for dtype in DTYPES}
    assert torch.load(path / "state.pt", weights_only=True) == {"lr": 0.5}
    manifest = json.loads((path / "checkpoint.json").read_text())
    assert {key: manifest[key] for key in MANIFEST} == MANIFEST
    assert (manifest["step"], manifest["aliases"]) == (7, {"tied": "w.torch.float32"})
    assert manifest["files"]["state.pt"]["bytes"] == (path / "state.pt").stat().st_size


def test_the_model_alone(tmp_path: Path) -> None:
    path = save(tmp_path, lr=0.5)
    (path / "state.pt").write_bytes(b"broken")
    loaded = Checkpoints(tmp_path).at(7, model_only=True)
    assert len(loaded.model_state) == len(DTYPES) + 1
    assert loaded.state == {}


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = save(tmp_path, moments=torch.randn(200), lr=0.1)
    checkpoints = Checkpoints(tmp_path, report=lambda text: None)
    chosen = random.Random(1)
    for number in range(210):
        file = path / ("checkpoint.json", "model.safetensors", "state.pt")[number % 3]
        whole = file.read_bytes()
        bit = chosen.randrange(len(whole) * 8)
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        file.write_bytes(broken)
        with pytest.raises(StoreError, match=f"{file.name} is not what was written"):
            checkpoints.latest()
        file.write_bytes(whole)
    assert checkpoints.at(7).state["lr"] == 0.1


@pytest.mark.parametrize("name", ["checkpoint.json", "model.safetensors", "state.pt"])
@pytest.mark.parametrize("size", [0, 1, -1])
def test_a_cut_file(tmp_path: Path, name: str, size: int) -> None:
    path = save(tmp_path)
    os.truncate(path / name, size % (path / name).stat().st_size)
    with pytest.raises(StoreError, match=f"is damaged: {name} "):
        Checkpoints(tmp_path).at(7)


def test_a_longer_and_a_missing_file(tmp_path: Path) -> None:
    path = save(tmp_path)
    with open(path / "state.pt", "ab") as file:
        file.write(b"x")
    with pytest.raises(StoreError, match=r"state.pt has [\d,]+ bytes, checkpoint.json says [\d,]+"):
        Checkpoints(tmp_path).at(7)
    (path / "state.pt").unlink()
    with pytest.raises(StoreError, match=r"state.pt cannot be read \(No such file"):
        Checkpoints(tmp_path).at(7)


def test_code_in_a_state_is_never_run(tmp_path: Path) -> None:
    """Even one with the right checksums: a checkpoint may come from somebody else."""
    path = save(tmp_path)
    torch.save({"run": os.getcwd}, path / "state.pt")
    manifest = read_manifest(path)
    manifest.files["state.pt"] = checkpoint_files.describe_file(path / "state.pt")
    (path / "checkpoint.json").write_bytes(encode_manifest(manifest))
    with pytest.raises(StoreError, match="cannot read it"):
        Checkpoints(tmp_path).at(7)


def test_a_newer_format_is_not_called_damage(tmp_path: Path) -> None:
    path = save(tmp_path)
    data = encode_manifest(read_manifest(path)).replace(b'"format_version": 1', b'"format_version": 9')
    fields = json.loads(data)
    unsigned = data.replace(fields["xxh3_128"].encode(), b"0" * 32)
    (path / "checkpoint.json").write_bytes(unsigned.replace(b"0" * 32, xxh3_128(unsigned).hexdigest().encode()))
    with pytest.raises(StoreError, match=r"has format version 9; .*pip install --upgrade headrace"):
        Checkpoints(tmp_path).latest()


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"loss": 1.0}, "manifest has no loss; it has tokens, metrics"),
        ({"metrics": {"val_loss": "low"}}, "metrics must map names to numbers"),
        ({"model": {"f": print}}, "cannot be written as JSON"),
        ({"tokens": "many"}, "cannot be written as JSON: Expected `int`"),
    ],
)
def test_a_manifest_that_cannot_be_written(tmp_path: Path, manifest: dict[str, Any], message: str) -> None:
    with Checkpoints(tmp_path) as checkpoints, pytest.raises(UsageError, match=message):
        checkpoints.save(1, {}, {}, manifest=manifest)


def test_numbers_of_other_libraries_are_metrics(tmp_path: Path) -> None:
    metrics = {"a": torch.tensor(1.5), "b": np.float32(2.5), "c": float("nan")}
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, {}, {}, manifest={"metrics": metrics}, background=False)
    assert Checkpoints(tmp_path).at(1).manifest.metrics == {"a": 1.5, "b": 2.5, "c": None}


def test_a_disk_that_cannot_take_it_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(checkpoint_files.shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(OutOfSpace, match=r"step-00000007: it needs 1.6 kB, the disk has 100 B.*training can go on"):
        save(tmp_path, moments=torch.zeros(300))
    assert list(tmp_path.glob("*step*")) == []


def test_a_disk_that_fills_up_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Checkpoints(tmp_path) as checkpoints:
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint_files, "sync", full)
            checkpoints.save(1, {"w": torch.ones(3)}, {}, manifest={})
            with pytest.raises(OutOfSpace, match="step-00000001"):
                checkpoints.wait()
        assert checkpoints.latest() is None
        checkpoints.save(2, {"w": torch.ones(3)}, {}, manifest={}, background=False)
        assert checkpoints.at(2).model_state["w"].tolist() == [1, 1, 1]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".lock", "step-00000002"]


FULL_DISK = """
import sys, torch
from headrace.errors import OutOfSpace
from headrace.training import checkpoint_files
from headrace.training.checkpoint import Checkpoints

checkpoint_files._check_space = lambda *_: None  # so that the libraries themselves meet the end of the disk
big, small = torch.zeros(2_000_000), torch.zeros(3)
with Checkpoints(sys.argv[1]) as checkpoints:
    checkpoints.save(1, {"w": small}, {}, manifest={}, background=False)
    for model, state in (big, small), (small, big):
        try:
            checkpoints.save(2, {"w": model}, {"m": state}, manifest={}, background=False)
        except OutOfSpace as error:
            print("full:", error)
    checkpoints.save(3, {"w": small}, {}, manifest={}, background=False)
    print([manifest.step for manifest in checkpoints.list()])
"""


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    script = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
    inside = [*mount, script, "sh", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here")
    run = [*inside, sys.executable, "-c", FULL_DISK, str(tmp_path)]
    result = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("full: No space left for the checkpoint") == 2
    assert result.stdout.endswith("[1, 3]\n")
