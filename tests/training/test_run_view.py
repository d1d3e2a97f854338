"""Run: a folder as it is, whatever happened in it."""

from __future__ import annotations

import fcntl
import itertools
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from dataset import EOS, write_dataset

import headrace
from conftest_events import a_run, end_event, eval_event, run_event, step_event
from conftest_pages import check
from headrace import Loader, TrainConfig, Trainer, build_model
from headrace.errors import UsageError
from headrace.telemetry import EventLog
from headrace.training.checkpoint_folder import lock_folder
from headrace.training.loss_range import MOST, LossRange
from headrace.training.run_view import Run


def write(path: Path, events: Iterable[dict[str, Any]]) -> Run:
    log = EventLog(path / "events.jsonl")
    for event in events:
        log.write_event(event)
    log.close()
    return Run(path)


def test_the_parts_of_a_run(tmp_path: Path) -> None:
    run = write(tmp_path / "r", a_run(1000))
    assert (run.step, run.steps, run.status, run.checkpoints[-1]) == (1000, 1000, "finished", 1000)
    assert len(run.history["steps"]) == 100
    assert run.history["shares"]["forward"][0] == pytest.approx(0.25)
    assert run.samples[-1]["predicted"] == " a mat"
    assert run.best == (run.history["val_loss"][-1], 1000)
    assert run.seconds == pytest.approx(50)
    assert run.config["train.lr"] == 3e-4
    assert repr(run).startswith(
        f"Run({str(tmp_path / 'r')!r}: transformer small, 25.3 M parameters, on web, code, fini"
    )
    assert headrace.Run is Run


def test_the_config_is_flat_and_from_run_json(tmp_path: Path) -> None:
    run = write(tmp_path, a_run(100))
    (tmp_path / "run.json").write_text(
        json.dumps({"recipe": {"model": {"name": "ten", "options": {}}}, "train": {"lr": 1}})
    )
    assert run.config == {"recipe.model.name": "ten", "recipe.model.options": {}, "train.lr": 1}


def test_a_run_that_went_back_counts_no_step_twice(tmp_path: Path) -> None:
    events = [*a_run(300), run_event(step=200), *(step_event(step, loss=9.0, losses=[9.0]) for step in (210, 220))]
    run = write(tmp_path, events)
    assert run.history["steps"] == list(range(10, 230, 10))
    assert run.loss_range.columns()[0] == list(range(10, 230, 10))
    assert run.loss_range.columns()[2][-1] == 9.0
    assert (run.resumes, run.step, run.checkpoints) == ([200], 220, [100, 200])


def test_reload_sees_what_was_written_since(tmp_path: Path) -> None:
    run = write(tmp_path, a_run(100))
    log = EventLog(tmp_path / "events.jsonl")
    log.write_event(step_event(110))
    log.close()
    assert run.step == 100
    assert run.reload().step == 110


def now(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**event, "t": time.time()} for event in events]


def test_status_by_the_events(tmp_path: Path) -> None:
    assert write(tmp_path / "a", [*a_run(100), end_event(100)]).status == "stopped"
    assert write(tmp_path / "b", a_run(100)).status == "stopped"  # silent for years
    assert write(tmp_path / "c", now(a_run(100))).status == "running"
    assert write(tmp_path / "d", now([*a_run(100), step_event(110, skipped=1)])).status == "failed"
    skips = run_event(config={"nonfinite": "skip"})
    assert write(tmp_path / "e", now([skips, step_event(10, skipped=1)])).status == "running"
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "run.json").write_text("{}")
    assert Run(tmp_path / "f").status == "empty"


def test_status_by_the_lock(tmp_path: Path) -> None:
    run = write(tmp_path, now(a_run(100)))
    (tmp_path / "checkpoints").mkdir()
    with lock_folder(tmp_path / "checkpoints"):
        assert run.status == "running"
    assert run.status == "stopped"
    with lock_folder(tmp_path / "checkpoints") as lock:  # asking did not keep it
        fcntl.flock(lock, fcntl.LOCK_UN)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the folder of a run"):
        Run(tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        Run(tmp_path / "nowhere")


def test_the_best_is_the_lowest(tmp_path: Path) -> None:
    run = write(tmp_path, [run_event(), eval_event(10, val_loss=3.0), eval_event(20, val_loss=4.0)])
    assert run.best == (3.0, 10)


def test_a_notebook_shows_it(tmp_path: Path) -> None:
    found = check(write(tmp_path, a_run(300))._repr_html_())
    assert found.tags.count("figure") == 3
    assert "4.1 M" not in found.text
    assert "1.23 M" in found.text


def test_a_trainer_shows_its_run(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [[[1, 2, 3, EOS]] * 200])
    shape: dict[str, Any] = {"width": 16, "layers": 1, "heads": 1, "ffn": 16, "context": 16}
    config = TrainConfig(steps=2, out=tmp_path / "run", log_every=1, tensorboard=False)
    model = build_model("transformer", "nano", vocab_size=259, **shape)
    trainer = Trainer(model, Loader(tmp_path / "data", seq_len=8, batch_size=2), config)
    assert trainer._repr_html_() is None
    trainer.run()
    shown = trainer._repr_html_()
    assert shown is not None
    assert "2 of 2" in check(shown).text


def test_the_range_is_bounded_and_loses_no_spike() -> None:
    found = LossRange()
    for step in range(1, 4 * MOST + 1):
        found.add({"kind": "step", "step": step, "steps": 1, "losses": [99.0 if step == 777 else 2.0, None]})
    steps, low, high = found.columns()
    assert MOST / 2 <= len(steps) <= MOST
    assert {later - step for step, later in itertools.pairwise(steps)} == {4}
    assert (max(high), min(low)) == (99.0, 2.0)
    assert steps == sorted(steps)
