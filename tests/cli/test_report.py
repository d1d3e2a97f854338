"""headrace report, as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conftest_events import a_run
from conftest_pages import check
from headrace.cli.main import VERBS
from headrace.cli.report import report
from headrace.errors import UsageError
from headrace.telemetry import EventLog
from headrace.training.run_folder import RunFolder


def run_folder(path: Path, last: int = 200) -> Path:
    log = EventLog(path / "events.jsonl")
    for event in a_run(last):
        log.write_event(event)
    log.close()
    return path


def call(*args: object) -> Result:
    result = CliRunner().invoke(report, [str(arg) for arg in args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_a_report_goes_into_its_run(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    assert call(run).stdout.strip() == str(run / "report.html")
    assert "Training run" in check((run / "report.html").read_text()).text


def test_json_names_the_file(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    out = tmp_path / "page.html"
    assert json.loads(call(run, "--out", out, "--json").stdout) == {"report": str(out)}
    assert out.is_file()
    assert not (run / "report.html").exists()


def test_several_runs_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_folder(tmp_path / "a")
    run_folder(tmp_path / "b", 100)
    assert call("a", "b").stdout.strip() == "comparison.html"
    assert "2 runs compared" in check(Path("comparison.html").read_text()).text


@pytest.mark.parametrize(
    ("name", "said"), [("nowhere", "there is no such folder"), ("empty", "not the folder of a run")]
)
def test_what_is_no_run_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=said):
        call(tmp_path / name)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    with pytest.raises(UsageError, match="Name another file with --out"):
        call(run, "--out", tmp_path / "missing" / "x.html")


def test_open_hands_the_file_to_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    run = run_folder(tmp_path / "a run")
    call(run, "--open")
    assert opened == [(run / "report.html").as_uri()]


def test_starting_over_deletes_the_report(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    facts: dict[str, Any] = {"recipe": {}, "train": {"steps": 1}}
    folder.claim(facts, force=False, report=print)
    run_folder(folder.path)
    call(folder.path)
    (folder.path / "notes.txt").write_text("mine")
    folder.claim(facts, force=True, report=print)
    assert sorted(path.name for path in folder.path.iterdir()) == ["notes.txt", "run.json"]


def test_it_is_a_verb_and_needs_no_torch(tmp_path: Path) -> None:
    assert VERBS["report"] == "headrace.cli.report"
    run = run_folder(tmp_path / "run")
    code = (
        "import sys; from headrace.cli.report import report; report([sys.argv[1]], standalone_mode=False);"
        "print(sorted({'torch', 'matplotlib', 'pyarrow'} & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"
