from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from conftest_dashboard import (
    a_run,
    append,
    eval_event,
    loss_at,
    recent,
    rows,
    run_event,
    step_event,
    write_recipe,
    write_run,
)
from headrace.dashboard.folder import Folder, find_runs
from headrace.dashboard.runs import Runs


def summary_of(folder: Path) -> dict[str, Any]:
    found = Runs(Folder(folder.parent), folder.parent / "data").get(folder.name)
    assert found is not None
    return found


def test_a_finished_run(tmp_path: Path) -> None:
    found = summary_of(write_run(tmp_path / "one", a_run(1000)))
    assert found["status"] == "finished"
    assert found["title"] == "transformer small, 25.3 M parameters, on web, code"
    assert (found["model"], found["size"], found["data"]) == ("transformer", "small", ["data/web", "data/code"])
    assert (found["step"], found["steps"], found["tokens"]) == (1000, 1000, 1000 * 4096)
    assert found["loss"] == pytest.approx(loss_at(1000))
    assert found["val_loss"] == found["best_val_loss"] == pytest.approx(loss_at(1000) + 0.1)
    assert (found["started"], found["updated"]) == (1.0, 1001.0)
    assert found["spark"][0] > found["spark"][-1]
    assert len(found["spark"]) <= 60
    assert found["eta_seconds"] is None
    assert found["problem"] is None


def test_only_the_ends_of_a_long_log_are_read(tmp_path: Path) -> None:
    """The best loss and the curve come from the history, the newest numbers from the end."""
    events = [run_event(steps=5000), eval_event(10, val_loss=1.25), *rows(1, 5000), eval_event(4000)]
    folder = write_run(tmp_path / "one", events)
    size = (folder / "events.jsonl").stat().st_size
    assert size > 1_000_000
    found = summary_of(folder)
    assert found["step"] == 5000
    assert found["best_val_loss"] == 1.25
    assert found["steps"] == 5000
    assert len(found["spark"]) == 60
    assert found["started"] == 1.0


def test_news_change_the_summary_and_nothing_else_does(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", recent(a_run(500)))
    write_run(tmp_path / "two", a_run(1000))
    runs = Runs(Folder(tmp_path), tmp_path)
    version = runs.refresh()
    assert len(runs.changed_since(0)[0]) == 2
    append(folder, step_event(510, t=time.time(), loss=1.5))
    runs._looked = float("-inf")
    runs.refresh()
    changed, gone = runs.changed_since(version)
    assert [(one["name"], one["step"], one["loss"]) for one in changed] == [("one", 510, 1.5)]
    assert gone == []


def test_a_run_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", a_run(100))
    runs = Runs(Folder(tmp_path), tmp_path)
    version = runs.refresh()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    runs._looked = runs.folder._looked = float("-inf")
    runs.refresh()
    assert runs.changed_since(version) == ([], ["one"])
    assert runs.all() == []


NAN = {"skipped": 1, "loss": None}


@pytest.mark.parametrize(
    ("before", "now", "status"),
    [
        ([run_event(), step_event(10)], [], "stopped"),
        ([run_event(), step_event(10)], [step_event(20)], "running"),
        ([], [run_event(), step_event(10, **NAN)], "failed"),
        ([run_event(config={"nonfinite": "skip"})], [step_event(10, **NAN)], "running"),
        ([run_event(), step_event(10)], [{"kind": "error", "text": "Out of memory"}], "failed"),
        (list(a_run(1000)), [run_event(1000, 2000)], "running"),  # goes on
        ([run_event(), {"t": 9.0, "kind": "end", "step": 500}], [], "stopped"),  # before its last step
    ],
)
def test_status(tmp_path: Path, before: list[dict[str, Any]], now: list[dict[str, Any]], status: str) -> None:
    folder = tmp_path / "one"
    append(folder, *before, *recent(now))
    found = summary_of(folder)
    assert found["status"] == status
    assert (found["problem"] is not None) == (status == "failed")


def test_a_slow_run_is_not_silent_before_three_intervals(tmp_path: Path) -> None:
    append(tmp_path / "one", run_event(), step_event(10, t=time.time() - 500, seconds=200.0))
    assert summary_of(tmp_path / "one")["status"] == "running"
    append(tmp_path / "two", run_event(), step_event(10, t=time.time() - 700, seconds=200.0))
    assert summary_of(tmp_path / "two")["status"] == "stopped"


def test_a_recipe_without_events_is_empty(tmp_path: Path) -> None:
    write_recipe(tmp_path / "one")
    found = summary_of(tmp_path / "one")
    assert (found["status"], found["model"], found["step"], found["steps"]) == ("empty", "ten", 0, 1000)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system does not list its locks")
def test_the_lock_says_at_once_whether_a_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    append(folder, *recent([run_event(), step_event(10)]))
    (folder / "checkpoints").mkdir()
    with open(folder / "checkpoints" / ".lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}")
        lock.flush()
        assert summary_of(folder)["status"] == "running"
    assert summary_of(folder)["status"] == "stopped"  # young as its last word is


def test_time_left_follows_the_pace(tmp_path: Path) -> None:
    append(
        tmp_path / "one",
        *recent([run_event(steps=1000), *(step_event(step, seconds=5.0) for step in range(10, 210, 10))]),
    )
    assert summary_of(tmp_path / "one")["eta_seconds"] == pytest.approx(800 * 0.5)


def test_waiting_for_data_is_a_problem(tmp_path: Path) -> None:
    append(tmp_path / "one", *recent([run_event(), step_event(10, data_wait_share=0.31)]))
    assert summary_of(tmp_path / "one")["problem"] == "31% of the time is spent waiting for data."


def test_data_has_the_name_that_the_list_of_datasets_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "one", [run_event(datasets=["data/group/web", "/elsewhere/code"])])
    found = Runs(Folder(tmp_path / "runs"), Path("data")).get("one")
    assert found is not None
    assert found["data"] == ["group/web", "/elsewhere/code"]


def test_runs_are_found_in_groups_and_not_in_each_other(tmp_path: Path) -> None:
    for name in ("a", "group/b", "group/deep/c", "a/checkpoints/d", ".hidden/e"):
        write_run(tmp_path / name, a_run(20))
    (tmp_path / "empty").mkdir()
    assert dict(find_runs(tmp_path)).keys() == {"a", "group/b", "group/deep/c"}


def test_the_folder_of_one_run_shows_it(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", a_run(20))
    assert dict(find_runs(folder)) == {"one": folder}


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside" / "secret", a_run(20))
    inside = write_run(tmp_path / "runs" / "inside", a_run(20))
    (tmp_path / "runs" / "out").symlink_to(outside)
    (tmp_path / "runs" / "beside").symlink_to(tmp_path / "outside")
    (tmp_path / "runs" / "again").symlink_to(inside)
    (tmp_path / "runs" / "up").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "files").mkdir()
    (tmp_path / "runs" / "files" / "events.jsonl").symlink_to(outside / "events.jsonl")
    (tmp_path / "runs" / "history").mkdir()
    (tmp_path / "runs" / "history" / "run.json").write_text("{}")
    (tmp_path / "runs" / "history" / "metrics_history.json").symlink_to(outside / "metrics_history.json")
    assert dict(find_runs(tmp_path / "runs")).keys() == {"inside"}


def test_a_run_that_went_back_is_behind_its_history(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", [run_event(), *rows(1, 500), eval_event(100), eval_event(500, val_loss=0.5)])
    append(folder, run_event(200), step_event(201, steps=1, loss=7e6))
    found = summary_of(folder)
    assert found["step"] == 201
    assert found["spark"][-1] > 1e6
    assert found["val_loss"] == found["best_val_loss"] == pytest.approx(loss_at(100) + 0.1)


def test_histories_that_take_long_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is there before all of them are read."""
    monkeypatch.setattr("headrace.dashboard.runs.CURVES", -1.0)
    for number in range(5):
        folder = write_run(tmp_path / f"run-{number}", [run_event(steps=600), *rows(1, 600)])
        assert (folder / "events.jsonl").stat().st_size > 200_000
    runs = Runs(Folder(tmp_path), tmp_path)
    assert len(runs.all()) == 5
    if filling := runs.filling:
        filling.join(60)
    assert {len(one["spark"]) for one in runs.all()} == {60}
