"""What tasks report, added up, and which of them are done or running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest_pipeline import make_texts, write_jsonl
from headrace import prepare
from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.plan import Task
from headrace.pipeline.results import Advanced, Finished, TaskResult
from headrace.pipeline.tracker import Tracker
from headrace.sources import Span
from headrace.telemetry import encode_json


def tasks(count: int, size: int = 100) -> list[Task]:
    return [Task(index, [Span("a.jsonl", "jsonl", size)]) for index in range(count)]


def result(index: int, size: int = 100) -> TaskResult:
    return TaskResult(index=index, shards=[], counts=Counts(input_bytes=size, tokens=7), engine="x", max_tokens=None)


def finished(index: int) -> Finished:
    return Finished(result(index), Stages(read=1.0))


def advanced(index: int, done: int) -> Advanced:
    return Advanced(index, Counts(input_bytes=done, tokens=3), Stages(tokenize=1.0))


def test_tasks_wait_run_and_are_done() -> None:
    tracker = Tracker(tasks(8), [result(0), result(1)])
    assert tracker.task_states().done == "0-1"
    for message in (finished(2), advanced(3, 40), finished(4), advanced(5, 10), advanced(5, 60), finished(7)):
        tracker.take(message)
    states = tracker.task_states()
    assert states.done == "0-2,4,7"
    told = [(row.index, row.input_bytes, row.total_input_bytes, row.tokens) for row in states.running]
    assert told == [(3, 40, 100, 3), (5, 60, 100, 3)]
    progress = tracker.progress()
    assert (progress.tasks_done, progress.tasks) == (5, 8)
    assert (progress.input_bytes, progress.total_input_bytes) == (600, 800)
    tracker.take(finished(3))
    assert tracker.task_states().done == "0-4,7"
    assert [row.index for row in tracker.task_states().running] == [5]


def test_a_task_that_is_done_again_counts_once() -> None:
    """A worker died after its result was written, and another did the task too."""
    tracker = Tracker(tasks(2), [])
    tracker.take(finished(0))
    tracker.take(finished(0))
    assert tracker.progress().tasks_done == 1


def test_no_share_is_above_one() -> None:
    """A reader may look beyond the end of its span for the end of a line."""
    tracker = Tracker(tasks(1), [])
    tracker.take(advanced(0, 120))
    (row,) = tracker.task_states().running
    assert row.input_bytes == row.total_input_bytes == 100


def test_ten_thousand_tasks_are_a_short_line() -> None:
    tracker = Tracker(tasks(10_000), [result(index) for index in range(5_000)])
    for index in range(5_010, 5_026, 2):
        tracker.take(finished(index))
        tracker.take(advanced(index + 1, 1))
    states = tracker.task_states()
    assert states.done.startswith("0-4999,5010,5012,")
    assert len(encode_json({"done": states.done, "running": len(states.running)})) < 200


@pytest.fixture
def events(tmp_path: Path) -> list[dict[str, Any]]:
    source = write_jsonl(tmp_path / "a.jsonl", [*make_texts(400), "rejected"])
    prepare(source, out=tmp_path / "out", tokenizer="bytes", task_bytes=20_000, val_fraction=0.1)
    return [json.loads(line) for line in (tmp_path / "out/.headrace/events.jsonl").read_text().splitlines()]


def test_the_events_of_a_run_tell_its_tasks(events: list[dict[str, Any]]) -> None:
    start, *_, last, done = events
    assert start["kind"] == "prepare_start"
    assert start["command"].startswith("headrace prepare ")
    assert (last["kind"], done["kind"]) == ("prepare_progress", "prepare_done")
    assert last["done"] == f"0-{start['tasks'] - 1}"
    assert last["running"] == []
    assert start["total_input_bytes"] == last["total_input_bytes"]


def test_the_last_event_says_how_it_went(events: list[dict[str, Any]]) -> None:
    last, done = events[-2:]
    assert done["tokens"] + done["val_tokens"] == last["counts"]["tokens"]
    assert done["documents"] + done["val_documents"] == last["counts"]["documents"] == 401
    assert done["rejects"] == 0
    assert (done["seconds"], done["text_mb_per_s"]) == (last["seconds"], last["text_mb_per_s"])
    assert done["stage_shares"] == last["stage_shares"]
