from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from conftest_dashboard import a_run, append, eval_event, rows, run_event, sample_event, step_event, write_run
from headrace.dashboard import live
from headrace.dashboard.answers import news, run_answer
from headrace.dashboard.library import Library
from headrace.dashboard.live import LiveRun


@pytest.fixture
def long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log counts as a long one."""
    monkeypatch.setattr(live, "WHOLE", 0)
    monkeypatch.setattr("headrace.dashboard.preview.TAIL", 20_000)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """About 1.3 MB, of which the history has all but the newest rows."""
    folder = write_run(tmp_path / "run", [run_event(), *rows(1, 2000), eval_event(2000), sample_event(2000)])
    append(folder, *rows(2001, 2100), {"t": 2.0, "kind": "message", "text": "Saved."})
    return folder


def test_a_short_run_is_whole_at_once(run: Path) -> None:
    found = LiveRun(run)
    found.refresh()
    answer = run_answer(found, 5000)
    assert answer["full"]
    assert answer["columns"]["steps"] == list(range(1, 2101))
    assert answer["evals"]["steps"] == [2000]
    assert answer["messages"] == [{"t": 2.0, "text": "Saved."}]


@pytest.mark.usefixtures("long_runs")
def test_a_long_run_is_shown_from_its_history_and_its_end(run: Path) -> None:
    whole = LiveRun(run)
    assert not whole.full
    first = run_answer(whole, 5000)
    assert first["columns"]["steps"][-1] == 2100
    assert first["columns"]["steps"][:3] == [1, 2, 3]
    assert first["evals"]["steps"] == [2000]
    assert [sample["step"] for sample in first["samples"]] == [2000]
    assert first["messages"] == [{"t": 2.0, "text": "Saved."}]
    whole.index()
    assert whole.full
    after = run_answer(whole, 5000)
    assert after["cursor"] == first["cursor"]
    assert after["columns"]["steps"] == list(range(1, 2101))


@pytest.mark.usefixtures("long_runs")
def test_a_preview_forgets_what_a_run_went_back_over(run: Path) -> None:
    append(run, run_event(2050), *rows(2051, 2060))
    found = run_answer(LiveRun(run), 5000)["columns"]["steps"]
    assert found[-1] == 2060
    assert found == sorted(set(found))


@pytest.mark.usefixtures("long_runs")
def test_a_preview_follows_while_the_index_is_made(run: Path) -> None:
    found = LiveRun(run)
    place = found.state.end
    append(run, *rows(2101, 2110))
    found.refresh()
    early = news(found, place)
    found.index()
    late = news(found, place)
    assert early is not None
    assert late is not None
    assert early["columns"]["steps"] == late["columns"]["steps"] == list(range(2101, 2111))
    assert early["cursor"] == late["cursor"]


def test_news_are_what_came_behind_a_cursor(run: Path) -> None:
    found = LiveRun(run)
    found.refresh()
    place = found.seen(found.cursor())
    assert place is not None
    assert news(found, place) is None
    append(run, step_event(2101, steps=1), eval_event(2101), sample_event(2101, "new"))
    found.refresh()
    told = news(found, place)
    assert told is not None
    assert told["columns"]["steps"] == [2101]
    assert told["evals"]["steps"] == [2101]
    assert [sample["predicted"] for sample in told["samples"]] == ["new"]


def test_a_cursor_is_good_for_another_server(run: Path) -> None:
    first = LiveRun(run)
    first.refresh()
    append(run, *rows(2101, 2103))
    second = LiveRun(run)
    second.refresh()
    place = second.seen(first.cursor())
    assert place is not None
    told = news(second, place)
    assert told is not None
    assert told["columns"]["steps"] == [2101, 2102, 2103]


@pytest.mark.parametrize("cursor", [None, "", "nonsense", "0.0", "7.-5", "zz.12", "1.99999999999999"])
def test_a_cursor_of_something_else_is_refused(run: Path, cursor: str | None) -> None:
    found = LiveRun(run)
    found.refresh()
    assert found.seen(cursor) is None


def test_a_cursor_is_refused_when_the_run_went_back_behind_it(run: Path) -> None:
    found = LiveRun(run)
    found.refresh()
    cursor = found.cursor()
    append(run, run_event(1500), *rows(1501, 1510))
    found.refresh()
    assert found.seen(cursor) is None
    assert run_answer(found, 5000)["columns"]["steps"] == list(range(1, 1511))
    assert found.seen(found.cursor()) is not None


def test_a_replaced_log_is_read_anew(run: Path) -> None:
    found = LiveRun(run)
    found.refresh()
    cursor = found.cursor()
    os.unlink(run / "events.jsonl")
    append(run, {**run_event(), "t": 77.5}, *rows(1, 5))
    found.refresh()
    assert found.seen(cursor) is None
    assert run_answer(found, 5000)["columns"]["steps"] == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("long_runs")
def test_memory_is_bounded(tmp_path: Path) -> None:
    for name in "abcdef":
        write_run(tmp_path / name, a_run(500))
    one = LiveRun(tmp_path / "a")
    one.index()
    library = Library(most_bytes=int(2.5 * one.nbytes))
    for name in "abcdef":
        found = library.get(tmp_path / name, whole=True)
        while found.indexing:
            time.sleep(0.01)
        library.get(tmp_path / name)
        assert library.nbytes <= 2.5 * one.nbytes + one.nbytes
    assert library.nbytes < 4 * one.nbytes


@pytest.mark.usefixtures("long_runs")
def test_what_would_not_fit_stays_a_preview(run: Path) -> None:
    library = Library(most_bytes=1000)
    found = library.get(run, whole=True)
    assert not found.indexing
    assert not found.full
    assert run_answer(found, 5000)["columns"]["steps"][-1] == 2100


def test_a_run_without_events_is_empty(tmp_path: Path) -> None:
    found = LiveRun(tmp_path)
    found.refresh()
    answer = run_answer(found, 100)
    assert answer["columns"]["steps"] == []
    assert answer["cursor"] == "0.0"
    append(tmp_path, run_event(), step_event(10))
    found.refresh()
    assert run_answer(found, 100)["columns"]["steps"] == [10]
