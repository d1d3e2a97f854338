"""Two ranks on gloo, started by the real torchrun: the losses of one process, checkpoints that any number reads.

A launch costs about six seconds of CPU for two imports of torch, so one computes for many tests (conftest_ranks.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import conftest_ranks as ranks
from conftest_pipeline import make_texts, write_jsonl
from headrace import prepare
from headrace.errors import StoreError, UsageError
from headrace.training import Checkpoints, TrainConfig, load_run
from headrace.training.checkpoint_shards import read_shards
from headrace.training.parallel import start_group
from headrace.training.strategies import build_strategy

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
KINDS = ("ddp", "fsdp")
SAME = {"rel": 0, "abs": 1e-4}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    write_jsonl(folder / "tales.jsonl", make_texts(300))
    prepare(folder / "tales.jsonl", out=folder / "tales", tokenizer="bytes", chunk_size=64)
    return folder


@pytest.fixture(scope="module")
def alone(place: Path) -> dict[str, Any]:
    """What one process computes."""
    torch.set_num_threads(1)
    data, runs = str(place / "tales"), place / "runs"
    return {
        "1": ranks.trained(ranks.recipe(data, runs / "alone")),
        "2": ranks.trained(ranks.recipe(data, runs / "alone-2", accumulation=2)),
        "documents": ranks.trained(ranks.recipe(data, runs / "alone-documents", documents=True)),
        "more": ranks.trained(ranks.recipe(data, runs / "alone-more", steps=ranks.MORE)),
    }


@pytest.fixture(scope="module")
def both(place: Path, alone: dict[str, Any]) -> list[dict[str, Any]]:
    """What two ranks compute, by rank."""
    command = [*TORCHRUN, ranks.__file__, str(place / "tales"), str(place / "runs")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == 0, done.stderr
    return [json.loads((place / "runs" / f"rank-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("case", ["1", "2", "documents"])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_one_process(both: list[dict[str, Any]], alone: dict[str, Any], kind: str, case: str) -> None:
    found, expected = both[0][f"{kind}-{case}"], alone[case]
    assert len(expected["losses"]) == ranks.STEPS
    assert found["losses"] == pytest.approx(expected["losses"], **SAME)
    assert found["norms"] == pytest.approx(expected["norms"], rel=1e-4)
    assert min(expected["norms"]) > 0.5  # so all were clipped
    assert found["val_loss"] == pytest.approx(expected["val_loss"], **SAME)
    assert (found["val_tokens"], found["tokens"]) == (expected["val_tokens"], expected["tokens"])
    assert found["samples"] == expected["samples"]


def test_only_rank_0_speaks(both: list[dict[str, Any]]) -> None:
    for name in both[0]:
        assert both[0][name]["events"] > 0
        assert both[1][name]["events"] == 0
        assert both[1][name]["val_loss"] == both[0][name]["val_loss"]


@pytest.mark.parametrize(
    "name", ["ddp-after-alone", "fsdp-after-alone", "fsdp-after-ddp", "fsdp-after-fsdp", "ddp-after-fsdp"]
)
def test_a_run_goes_on_spread_otherwise(both: list[dict[str, Any]], alone: dict[str, Any], name: str) -> None:
    assert both[0][name]["step"] == ranks.MORE
    assert both[0][name]["losses"] == pytest.approx(alone["more"]["losses"][ranks.STEPS :], **SAME)


def copied(place: Path, name: str, new: str) -> Path:
    target = place / "runs" / new
    shutil.copytree(place / "runs" / name, target)
    return target


@pytest.mark.parametrize("kind", KINDS)
def test_one_process_goes_on(place: Path, both: list[dict[str, Any]], alone: dict[str, Any], kind: str) -> None:
    out = copied(place, f"{kind}-1", f"alone-after-{kind}")
    found = ranks.trained(ranks.recipe(str(place / "tales"), out, steps=ranks.MORE))
    assert found["losses"] == pytest.approx(alone["more"]["losses"][ranks.STEPS :], **SAME)


def test_shards_are_files_of_every_rank(place: Path, both: list[dict[str, Any]]) -> None:
    (manifest,) = Checkpoints(place / "runs" / "fsdp-1" / "checkpoints").list()
    assert manifest.format_version == 2
    assert set(manifest.files) == {"shards/.metadata", "shards/__0_0.distcp", "shards/__1_0.distcp", "state.pt"}


def test_shards_can_be_sampled_from(place: Path, both: list[dict[str, Any]]) -> None:
    whole, sharded = (load_run(place / "runs" / f"{kind}-1", device="cpu") for kind in KINDS)
    for (name, one), (_, other) in zip(
        whole.model.state_dict().items(), sharded.model.state_dict().items(), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, msg=name)
    assert sharded.write("The ", 8, temperature=0.0) == whole.write("The ", 8, temperature=0.0)


def test_a_changed_shard_is_noticed(place: Path, both: list[dict[str, Any]]) -> None:
    folder = copied(place, "fsdp-1", "flipped") / "checkpoints"
    shard = folder / f"step-{ranks.STEPS:08d}" / "shards" / "__1_0.distcp"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(StoreError, match=r"__1_0.distcp is not what was written"):
        Checkpoints(folder, report=lambda text: None).latest(model_only=True)


def test_a_list_of_shards_runs_no_code(place: Path, both: list[dict[str, Any]], tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shutil.copytree(place / "runs" / "fsdp-1" / "checkpoints" / f"step-{ranks.STEPS:08d}" / "shards", shards)
    (shards / ".metadata").write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR.")
    with pytest.raises(StoreError, match=r"names os\.system"):
        read_shards(shards, model_only=False, place=None)
    assert not (tmp_path / "ran").exists()


# What is refused


@pytest.mark.parametrize("kind", KINDS)
def test_needs_torchrun(kind: str) -> None:
    with pytest.raises(UsageError, match="torchrun --nproc-per-node 2 -m headrace train"), start_group(kind):
        pass


def under_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")


def test_ranks_do_not_all_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    under_torchrun(monkeypatch)
    with pytest.raises(UsageError, match="would all do the same"), start_group("none"):
        pass


def test_one_device_is_not_for_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    under_torchrun(monkeypatch)
    own = "--device cuda:1 under torchrun: each rank takes its own"
    with pytest.raises(UsageError, match=own), start_group("ddp", "cuda:1"):
        pass


def test_more_ranks_than_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    under_torchrun(monkeypatch)
    monkeypatch.setenv("LOCAL_RANK", str(torch.cuda.device_count()))
    with pytest.raises(UsageError, match="No GPU for rank"), start_group("ddp", "cuda"):
        pass


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"optimizer": "muon"}, "muon needs whole matrices"),
        ({"precision": "fp16"}, "the loss scale knows no shards"),
        ({"compile": True}, "--compile with --parallel fsdp"),
    ],
)
def test_what_shards_cannot_do(setting: dict[str, Any], message: str, tmp_path: Path) -> None:
    class Fsdp(ranks.Group):
        kind = "fsdp"

    config = TrainConfig(steps=1, out=tmp_path, **setting)
    with pytest.raises(UsageError, match=message):
        build_strategy(torch.nn.Linear(2, 2), Fsdp(), torch.device("cpu"), config)
