"""headrace diagnose training and compare, as they are called."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conftest_events import SPANS, a_run, run_event, step_event
from headrace.cli.diagnose_compare import compare
from headrace.cli.diagnose_training import training
from headrace.diagnosis.report import load_report
from headrace.errors import UsageError
from headrace.telemetry import EventLog


def run_folder(path: Path, events: Iterable[dict[str, Any]]) -> Path:
    log = EventLog(path / "events.jsonl")
    for event in events:
        log.write_event(event)
    log.close()
    return path


def call(command: Any, *args: object) -> Result:
    result = CliRunner().invoke(command, [str(arg) for arg in args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    spans = {**dict.fromkeys(SPANS, 0.0), "data_wait": 0.4, "forward": 0.1}
    events = [run_event(), *(step_event(step, spans=spans) for step in range(10, 110, 10))]
    return run_folder(tmp_path / "slow", events)


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    return run_folder(tmp_path / "fast", a_run(100))


def test_the_tree(slow: Path) -> None:
    lines = call(training, slow).stdout.splitlines()
    assert lines[0] == "Step 50 ms   81,920 tokens/s   CPU 87%"
    assert lines[1].startswith("├─ data wait  40 ms   80%   ← bottleneck: The step waits for its data")
    assert "→ 5.0x (bound by Amdahl, measured share)" in lines[3]
    assert max(map(len, lines)) <= 100


def test_json_is_a_report(slow: Path, tmp_path: Path) -> None:
    found = call(training, slow, "--json").stdout
    (tmp_path / "report.json").write_text(found)
    report = load_report(tmp_path / "report.json")
    assert (report.kind, report.fixes[0].rule) == ("training", "waiting_for_data")


def test_html(slow: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = call(training, slow, "--html", page)
    assert result.stdout.startswith("Step 50 ms")
    assert f"Wrote {page}" in result.stderr
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "The step waits for its data" in html
    assert html.count("<svg") == 2


def test_json_and_html_at_once(slow: Path, tmp_path: Path) -> None:
    assert json.loads(call(training, slow, "--json", "--html", tmp_path / "x.html").stdout)["kind"] == "training"
    assert (tmp_path / "x.html").exists()


def test_a_page_that_cannot_be_written(slow: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this file cannot be written"):
        call(training, slow, "--html", tmp_path / "no" / "folder.html")


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is not the folder of a run"):
        call(training, tmp_path)


@pytest.fixture
def reports(slow: Path, fast: Path, tmp_path: Path) -> tuple[Path, Path]:
    for folder in (slow, fast):
        (tmp_path / f"{folder.name}.json").write_text(call(training, folder, "--json").stdout)
    return tmp_path / "slow.json", tmp_path / "fast.json"


def test_compare(reports: tuple[Path, Path]) -> None:
    text = call(compare, *reports).stdout
    assert text.startswith("Step 50 ms → 50 ms   1.00x\n├─ data wait")
    assert "The gain did not come true: 5.00x was predicted" in text


def test_compare_as_json(reports: tuple[Path, Path]) -> None:
    found = json.loads(call(compare, *reports, "--json").stdout)
    assert found["fixes"][0]["rule"] == "waiting_for_data"
    assert found["fixes"][0]["gone"] is True
    assert found["came_true"] == pytest.approx(0, abs=1e-6)


def test_compare_wants_reports(reports: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such report"):
        call(compare, reports[0], tmp_path / "nothing.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(UsageError, match="is no report of this version"):
        call(compare, reports[0], tmp_path / "bad.json")
