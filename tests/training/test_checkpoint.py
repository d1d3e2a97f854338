"""Checkpoints of a run: the newest whole one is found, training is not disturbed, old ones go and the best stays."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace.errors import Busy, HeadraceError, OutOfSpace, StoreError, UsageError
from headrace.training import checkpoint_files, checkpoint_folder
from headrace.training.checkpoint import Checkpoints
from headrace.training.checkpoint_folder import reading
from headrace.training.checkpoint_manifest import Manifest
from headrace.training.retention import best_first, expired


def save(checkpoints: Checkpoints, step: int, val_loss: float | None = None) -> Path:
    metrics = {} if val_loss is None else {"val_loss": val_loss}
    weights = {"w": torch.full((4,), float(step))}
    checkpoints.save(step, weights, {"step": step}, manifest={"metrics": metrics}, background=False)
    return checkpoints.folder / f"step-{step:08d}"


def steps(folder: Path) -> list[int]:
    return [manifest.step for manifest in Checkpoints(folder).list()]


def damage(path: Path, file: str = "state.pt") -> None:
    data = bytearray((path / file).read_bytes())
    data[len(data) // 2] ^= 4
    (path / file).write_bytes(data)


def test_an_empty_or_missing_folder(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        checkpoints = Checkpoints(folder)
        assert checkpoints.latest() is None
        assert checkpoints.best() is None
        assert checkpoints.list() == ()
    assert not (tmp_path / "none").exists()


def test_a_damaged_newest_falls_back_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    with Checkpoints(tmp_path, report=said.append) as checkpoints:
        paths = [save(checkpoints, step) for step in (1, 2, 3)]
        damage(paths[2])
        (paths[1] / "model.safetensors").unlink()
        loaded = checkpoints.latest()
    assert loaded is not None
    assert loaded.step == loaded.state["step"] == 1
    changed, missing = "(checksum differs)", "(No such file or directory)"
    assert said == [
        f"Checkpoint {paths[2]} is damaged: state.pt is not what was written {changed}. Going back to step-00000002.",
        f"Checkpoint {paths[1]} is damaged: model.safetensors cannot be read {missing}. Going back to step-00000001.",
    ]


def test_when_all_are_damaged(tmp_path: Path) -> None:
    said: list[str] = []
    with Checkpoints(tmp_path, report=said.append) as checkpoints:
        for step in (1, 2):
            damage(save(checkpoints, step, 1.0))
        for find in (checkpoints.latest, checkpoints.best):
            with pytest.raises(
                StoreError, match=r"step-00000002: state.pt .*step-00000001: state.pt .*start the run anew"
            ):
                find()
    assert said[1].endswith("There is none before it.")


def test_a_checkpoint_without_a_manifest_does_not_exist(tmp_path: Path) -> None:
    said: list[str] = []
    with Checkpoints(tmp_path, report=said.append) as checkpoints:
        save(checkpoints, 1)
        (save(checkpoints, 2) / "checkpoint.json").unlink()
        assert steps(tmp_path) == [1]
        loaded = checkpoints.latest()
        assert loaded is not None
        assert loaded.step == 1
        with pytest.raises(UsageError, match=r"no checkpoint of step 2. Its steps are: 1\."):
            checkpoints.at(2)
    assert said == [f"Checkpoint {tmp_path / 'step-00000002'} is passed over: it has no manifest."]


def test_training_goes_on_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_write, began = threading.Event(), threading.Event()
    save_file = checkpoint_files.save_file

    def held(*arguments: Any, **options: Any) -> None:
        began.set()
        assert may_write.wait(60)
        save_file(*arguments, **options)

    monkeypatch.setattr(checkpoint_files, "save_file", held)
    weight, moment = torch.ones(1000), torch.ones(1000)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, {"w": weight}, {"m": moment}, manifest={})
        assert began.wait(60)
        weight.mul_(2)
        moment.mul_(2)
        assert steps(tmp_path) == []
        may_write.set()
        loaded = checkpoints.latest()
        assert loaded is not None
        assert torch.equal(loaded.model_state["w"], torch.ones(1000))
        assert torch.equal(loaded.state["m"], torch.ones(1000))


def test_an_error_in_the_background_costs_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {"w": torch.ones(3)}

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Checkpoints(tmp_path) as checkpoints:
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint_files, "save_file", broken)
            checkpoints.save(1, weights, {}, manifest={})
            assert checkpoints.latest() is None
        with pytest.raises(StoreError, match=r"step-00000001 was not saved \(Input/output error\).*training can go on"):
            checkpoints.save(2, weights, {}, manifest={})
        checkpoints.wait()
        assert steps(tmp_path) == [2]
        monkeypatch.setattr(checkpoint_files, "save_file", broken)
        checkpoints.save(3, weights, {}, manifest={})
        with pytest.raises(HeadraceError, match="step-00000003"):
            checkpoints.close()
        checkpoints.close()


def test_any_error_of_a_library_is_named(tmp_path: Path) -> None:
    """safetensors writes no complex128, and finds out only in the background."""
    with Checkpoints(tmp_path) as checkpoints, pytest.raises(StoreError, match="step-00000001 was not saved"):
        checkpoints.save(1, {"w": torch.ones(3, dtype=torch.complex128)}, {}, manifest={}, background=False)


def test_the_last_and_the_best_are_kept(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, keep_last=2, keep_best=1) as checkpoints:
        for step, loss in enumerate([5.0, 2.0, 3.0, float("nan"), None, 4.0], start=1):
            save(checkpoints, step, loss)
        assert steps(tmp_path) == [2, 5, 6]
        best = checkpoints.best()
        assert best is not None
        assert best.step == 2
        save(checkpoints, 7, 1.5)
        assert steps(tmp_path) == [6, 7]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".lock", "step-00000006", "step-00000007"]


def test_who_may_go() -> None:
    losses = {1: 3.0, 2: 1.0, 3: 1.0, 4: None, 5: 9.0}
    manifests = [Manifest(step=step, metrics={"val_loss": loss}) for step, loss in losses.items()]
    assert [manifest.step for manifest in best_first(manifests, "val_loss")] == [3, 2, 1, 5]
    assert expired(manifests, 5, keep_last=1, keep_best=1, metric="val_loss") == [1, 2, 4]
    assert expired(manifests, 5, keep_last=1, keep_best=0, metric="val_loss") == [1, 2, 3, 4]
    assert expired(manifests, 1, keep_last=2, keep_best=0, metric="val_loss") == [2, 3]
    assert expired(manifests, 5, keep_last=9, keep_best=1, metric="other") == []


def test_a_damaged_best_gives_way_to_the_next(tmp_path: Path) -> None:
    said: list[str] = []
    with Checkpoints(tmp_path, report=said.append) as checkpoints:
        save(checkpoints, 1, 2.0)
        damage(save(checkpoints, 2, 1.0))
        damage(save(checkpoints, 3, 0.5), "checkpoint.json")
        best = checkpoints.best()
        assert best is not None
        assert best.step == 1
    assert len(said) == 2


def test_a_damaged_one_is_not_counted_among_the_last(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, keep_last=2, report=lambda _: None) as checkpoints:
        save(checkpoints, 1)
        damage(save(checkpoints, 3))
        assert checkpoints.latest() is not None
        save(checkpoints, 2)
        assert steps(tmp_path) == [1, 2, 3]  # a later step, damaged: nothing newer is whole yet
        save(checkpoints, 4)
        assert steps(tmp_path) == [2, 4]


def test_the_one_just_written_stays_after_going_back(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, keep_last=2, keep_best=0) as checkpoints:
        for step in (10, 20, 30):
            save(checkpoints, step)
        save(checkpoints, 15)
        assert steps(tmp_path) == [15, 20, 30]
        checkpoints.discard_after(15)
        assert steps(tmp_path) == [15]


def test_one_that_is_being_read_stays(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, keep_last=1) as checkpoints:
        first = save(checkpoints, 1)
        with reading(first):
            save(checkpoints, 2)
            assert steps(tmp_path) == [1, 2]
            with pytest.raises(StoreError, match="is being read by another process"):
                checkpoints.discard_after(0)
        save(checkpoints, 3)
        assert steps(tmp_path) == [3]


def test_one_loses_its_name_before_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Checkpoints(tmp_path, keep_last=1) as checkpoints, monkeypatch.context() as patch:
        save(checkpoints, 1)
        patch.setattr(checkpoint_folder.shutil, "rmtree", lambda *_, **__: None)  # as if killed before the first file
        save(checkpoints, 2)
    names = {".lock", ".deleting-step-00000001", "step-00000002"}
    assert {entry.name for entry in tmp_path.iterdir()} == names
    with Checkpoints(tmp_path):
        pass
    assert steps(tmp_path) == [2]
    assert not (tmp_path / ".deleting-step-00000001").exists()


def test_the_same_step_again_replaces_it(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as checkpoints:
        damage(save(checkpoints, 1, 5.0))
        save(checkpoints, 1, 4.0)
        assert checkpoints.at(1).manifest.metrics == {"val_loss": 4.0}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".lock", "step-00000001"]


def test_only_the_leftovers_of_a_killed_writer_are_cleared(tmp_path: Path) -> None:
    others = [".writing-notes", "step-1", ".cache", "notes", "step-00000009"]
    for name in [*others, ".writing-step-00000004", ".deleting-step-00000001", ".replaced-step-00000009"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    Checkpoints(tmp_path).list()  # reading clears nothing: somebody may be writing
    assert len(list(tmp_path.iterdir())) == 8
    with Checkpoints(tmp_path):
        pass
    assert {entry.name for entry in tmp_path.iterdir()} == {*others, ".lock"}
    assert (tmp_path / "step-00000009" / "file").read_text() == "step-00000009"


def test_one_set_aside_comes_back_when_its_successor_never_came(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as checkpoints:
        path = save(checkpoints, 1)
    shutil.copytree(path, tmp_path / ".writing-step-00000001")
    os.rename(path, tmp_path / ".replaced-step-00000001")
    with Checkpoints(tmp_path) as checkpoints:
        loaded = checkpoints.latest()
    assert loaded is not None
    assert loaded.step == 1


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as first:
        save(first, 1)
        second = Checkpoints(tmp_path)
        with pytest.raises(Busy, match=f"is being written by process {os.getpid()} on"):
            second.save(2, {}, {}, manifest={})
        assert second.at(1).step == 1
    second.save(2, {}, {}, manifest={})
    second.close()
    assert steps(tmp_path) == [1, 2]


def test_settings_that_cannot_be_right(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="keep_last is 0, at least 1"):
        Checkpoints(tmp_path, keep_last=0)
    with Checkpoints(tmp_path) as checkpoints, pytest.raises(UsageError, match="step is -1"):
        checkpoints.save(-1, {}, {}, manifest={})


def test_a_bad_state_does_not_hide_the_failure_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Checkpoints(tmp_path) as checkpoints:
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(checkpoint_files.shutil, "disk_usage", lambda _: usage._replace(free=0))
        checkpoints.save(1, {"w": torch.ones(3)}, {}, manifest={})
        with pytest.raises(UsageError, match="cannot hold"):
            checkpoints.save(2, {}, {"f": print}, manifest={})
        with pytest.raises(OutOfSpace, match="step-00000001"):
            checkpoints.wait()
