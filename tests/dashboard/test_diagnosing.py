from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest_dashboard import a_run, append, run_event, step_event, write_run
from headrace.dashboard import diagnosing, live
from headrace.dashboard.diagnosing import Diagnoses, answer
from headrace.dashboard.live import LiveRun
from headrace.diagnosis.training import diagnose_run_folder


def diagnosed(folder: Path) -> dict[str, Any] | None:
    run = LiveRun(folder)
    run.refresh()
    return Diagnoses().get(run)


def slow(step: int, **more: Any) -> dict[str, Any]:
    spans = {"data_wait": 0.3, "forward": 0.1, "backward": 0.1, "other": 0.0}
    return step_event(step, spans=spans, data_wait_share=0.6, **more)


@pytest.mark.parametrize("events", [list(a_run(1000)), [run_event(), *map(slow, range(10, 500, 10))]])
def test_it_is_the_diagnosis_of_the_command(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    folder = write_run(tmp_path / "one", events)
    found = diagnosed(folder)
    assert found == answer(diagnose_run_folder(folder))
    assert found["phases"]


def test_a_fix_has_all_that_a_page_shows(tmp_path: Path) -> None:
    found = diagnosed(write_run(tmp_path / "one", [run_event(), *map(slow, range(10, 500, 10))]))
    assert found is not None
    assert found["verdict"].startswith("Input-bound")
    fix = found["fixes"][0]
    assert fix["rank"] == 1
    assert fix["speedup"] > 2
    assert "headrace diagnose data" in fix["advice"]


@pytest.mark.parametrize("events", [[], [run_event()], [run_event(), {"t": 1.0, "kind": "step", "step": 3}]])
def test_nothing_is_said_before_something_was_measured(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    append(tmp_path, *events)
    assert diagnosed(tmp_path) is None


def test_a_long_run_is_judged_by_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was slow at first; that it has learned long ago is no fault."""
    monkeypatch.setattr(live, "WHOLE", 0)
    monkeypatch.setattr("headrace.dashboard.preview.TAIL", 100_000)
    monkeypatch.setattr(diagnosing, "TAIL", 100_000)
    events = [run_event(), *map(slow, range(10, 2000, 10))]
    events += [step_event(step, loss=3.0, losses=[3.0 + step % 7 / 10] * 10) for step in range(2000, 9000, 10)]
    append(tmp_path, *events)
    assert (tmp_path / "events.jsonl").stat().st_size > 400_000
    found = diagnosed(tmp_path)
    assert found is not None
    assert found["verdict"].startswith("Compute-bound")
    assert found["fixes"] == []
    assert not any("Warm-up" in reason for reason in found["missing"])


def test_it_is_kept_until_there_is_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "one", a_run(500))
    run, kept = LiveRun(folder), Diagnoses()
    run.refresh()
    first = kept.get(run)
    assert kept.get(run) is first
    append(folder, *map(slow, range(510, 600, 10)))
    run.refresh()
    assert kept.get(run) is first  # for five seconds
    monkeypatch.setattr(diagnosing, "PAUSE", 0.0)
    assert kept.get(run) != first
