"""A dataset in the making as a page sees it: while it runs, after a kill, when it goes on, and when it is done."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest_pipeline import make_texts, write_jsonl
from headrace import prepare
from headrace.dashboard import prepare_log, prepare_progress
from headrace.dashboard.data_dataset import DatasetPage
from headrace.dashboard.data_stores import Stores
from headrace.dashboard.data_summary import dataset_summaries
from headrace.dashboard.prepare_log import PrepareLog, Rate
from headrace.dashboard.prepare_progress import Preparation, Preparations, parse_ranges
from headrace.errors import DataRejected
from headrace.telemetry import EventLog, encode_json

NUMBERS = {"share", "tasks_done", "tasks", "seconds", "eta_seconds", "text_mb_per_s", "tokens_per_s", "documents"}
NUMBERS |= {"tokens", "rejects", "state", "stage_shares", "shards", "rate", "command", "problem", "updated"}


def command(source: Path, out: Path) -> list[str]:
    """With the reference engine, so that a run can be met in the middle."""
    options = ["--task-bytes", "500000", "--workers", "2", "--engine", "reference"]
    return [sys.executable, "-m", "headrace", "prepare", str(source), "--out", str(out), *options]


def wait_for(ready: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def look(seen: Preparation) -> dict[str, Any]:
    found = seen.as_dict()
    assert found is not None
    assert found.keys() == NUMBERS
    encode_json(found)
    return found


def test_a_run_that_is_killed_and_goes_on(tmp_path: Path) -> None:
    source, out = write_jsonl(tmp_path / "large.jsonl", make_texts(45_000)), tmp_path / "data" / "web"
    seen = Preparation(out)
    with subprocess.Popen(command(source, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: (seen.as_dict() or {"share": 0})["share"] > 0)
            check_in_the_middle(tmp_path / "data", look(seen))
        finally:
            process.kill()

    found = look(seen)
    assert found["state"] == "stopped"
    assert found["eta_seconds"] is None
    assert "running" not in [cell["state"] for cell in found["shards"]]
    options = "--workers 2 --engine reference --task-bytes 500000"
    assert found["command"] == f"headrace prepare {source} --out {out} {options}"
    assert dataset_summaries(tmp_path / "data")[0]["state"] == "stopped"
    page = DatasetPage(Stores()).describe("web", out)
    assert page["splits"] == page["shards"] == []
    assert page["metadata"]["chunk_size"] == 2048
    assert page["prepare"]["state"] == "stopped"

    done_before = found["tasks_done"]
    subprocess.run(command(source, out), check=True, capture_output=True)
    check_at_the_end(out, look(seen), done_before)
    assert look(Preparation(out)) == look(seen)  # one that saw nothing of it reads the same


def check_in_the_middle(folder: Path, found: dict[str, Any]) -> None:
    assert found["state"] == "preparing"
    assert 0 < found["share"] < 1
    assert found["tasks"] == len(found["shards"]) > 10
    states = [cell["state"] for cell in found["shards"]]
    assert {"done", "waiting"} <= set(states)
    assert all(cell["share"] == 1 and cell["tokens"] > 0 for cell in found["shards"] if cell["state"] == "done")
    assert all(cell["share"] == cell["tokens"] == 0 for cell in found["shards"] if cell["state"] == "waiting")
    (row,) = dataset_summaries(folder)
    assert (row["name"], row["state"], row["tokenizer"]) == ("web", "preparing", "headrace-32k")
    assert row["chunk_size"] == 2048


def check_at_the_end(out: Path, found: dict[str, Any], done_before: int) -> None:
    assert found["state"] == "ready"
    assert (found["share"], found["problem"], found["command"]) == (1.0, None, None)
    assert found["tasks_done"] == found["tasks"] > done_before
    metadata = json.loads((out / "metadata.json").read_text())
    assert found["tokens"] == metadata["total_tokens"] == sum(cell["tokens"] for cell in found["shards"])
    assert found["documents"] == 45_000
    assert sum(found["stage_shares"].values()) == pytest.approx(1.0)
    rate = found["rate"]
    assert len(rate["seconds"]) == len(rate["mb_per_s"]) > 1
    assert rate["seconds"] == sorted(rate["seconds"])
    assert max(rate["mb_per_s"]) > 0


def test_a_small_dataset_in_one_process(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(300))
    store = prepare(source, out=tmp_path / "out", tokenizer="bytes", val_fraction=0.2, task_bytes=20_000)
    found = look(Preparation(tmp_path / "out"))
    assert found["state"] == "ready"
    assert found["tokens"] == store.metadata.total_tokens + store.metadata.val_tokens
    assert found["documents"] == 300
    assert found["seconds"] > 0
    assert found["text_mb_per_s"] > 0
    assert [cell["state"] for cell in found["shards"]] == ["done"] * found["tasks"]
    assert sum(cell["tokens"] for cell in found["shards"]) == found["tokens"]


def test_a_dataset_that_failed_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "good"}\n{"text": bad}\n' * 50)
    with pytest.raises(DataRejected):
        prepare(tmp_path / "a.jsonl", out=tmp_path / "out", tokenizer="bytes")
    found = look(Preparation(tmp_path / "out"))
    assert found["state"] == "stopped"
    assert "50 of 100 records" in found["problem"]
    prepare(tmp_path / "a.jsonl", out=tmp_path / "out", tokenizer="bytes", max_reject_rate=1.0)
    found = look(Preparation(tmp_path / "out"))
    assert (found["state"], found["problem"], found["rejects"]) == ("ready", None, 50)


def test_only_some_chunks(tmp_path: Path) -> None:
    """Tasks that were not needed hold nothing."""
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(300))
    store = prepare(source, out=tmp_path / "out", tokenizer="bytes", chunk_size=64, max_chunks=9, task_bytes=5_000)
    found = look(Preparation(tmp_path / "out"))
    assert found["tokens"] == sum(cell["tokens"] for cell in found["shards"]) == store.total_tokens == 9 * 64


def test_nothing_is_known_of_a_dataset_that_came_from_elsewhere(tmp_path: Path) -> None:
    assert Preparation(tmp_path).as_dict() is None


def write_log(folder: Path, *events: dict[str, Any]) -> None:
    log = EventLog(folder / ".headrace" / "events.jsonl")
    for event in events:
        log.write_event(event)
    log.close()


def progress(seconds: float, text_bytes: int, tasks: int = 4, **more: Any) -> dict[str, Any]:
    counts = {"documents": 1, "rejects": 0, "input_bytes": 0, "text_bytes": text_bytes, "tokens": 5, "verified": 0}
    return {"t": 1.0, "kind": "prepare_progress", "tasks": tasks, "seconds": seconds, "counts": counts, **more}


def start(tasks: int = 4, resumed: int = 0) -> dict[str, Any]:
    return {"t": 1.0, "kind": "prepare_start", "tasks": tasks, "resumed": resumed}


def test_ten_thousand_tasks_are_few_cells(tmp_path: Path) -> None:
    running = [[5000, 30, 60, 7]]
    write_log(tmp_path, start(10_000), progress(1.0, 5, 10_000, done="0-4999,5003", running=running))
    (tmp_path / ".headrace" / "lock").write_text("")
    fresh = Preparation(tmp_path)
    found = look(fresh)
    assert found["state"] == "preparing"  # who holds it is not known, but the log is young
    assert len(found["shards"]) == 500
    assert sum(cell["tasks"] for cell in found["shards"]) == 10_000
    cell = found["shards"][250]
    assert (cell["index"], cell["name"], cell["state"]) == (5000, "shard-05000 to 05019", "running")
    assert cell["share"] == pytest.approx(1.5 / 20)
    assert [other["state"] for other in found["shards"][248:252]] == ["done", "done", "running", "waiting"]
    assert len(encode_json(found)) < 100_000


def test_results_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, start(3))
    for index in range(2):
        told = {"index": index, "counts": {"tokens": 10 * index}, "shards": []}
        (tmp_path / ".headrace" / f"task-{index:05d}.json").write_text(json.dumps(told))
    (tmp_path / ".headrace" / "task-00002.json").write_text('{"index"')
    (tmp_path / ".headrace" / "task-00000.rejects.jsonl").write_text("{}")
    seen, reads = Preparation(tmp_path), list[str]()
    whole = prepare_progress._read_result
    monkeypatch.setattr(prepare_progress, "_read_result", lambda path: (reads.append(path), whole(path))[1])
    for _ in range(3):
        cells = look(seen)["shards"]
        assert [(cell["state"], cell["tokens"]) for cell in cells] == [("done", 0), ("done", 10), ("waiting", 0)]
    assert sorted({Path(path).name for path in reads if reads.count(path) == 1}) == [
        "task-00000.json",
        "task-00001.json",
    ]


def test_the_log_is_read_on_and_not_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, start(), progress(1.0, 1_000_000))
    log = PrepareLog(tmp_path / ".headrace" / "events.jsonl")
    log.refresh()
    taken: list[str] = []
    take = log._take
    monkeypatch.setattr(log, "_take", lambda line: (taken.append(line.kind), take(line))[1])
    log.refresh()
    assert taken == []
    write_log(tmp_path, progress(2.0, 3_000_000))
    log.refresh()
    assert taken == ["prepare_progress"]
    assert log.rate.as_dict() == {"seconds": [1.0, 2.0], "mb_per_s": [1.0, 2.0]}


def test_a_log_that_was_replaced_or_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / ".headrace" / "events.jsonl"
    write_log(tmp_path, start(), progress(1.0, 1_000_000), progress(2.0, 2_000_000))
    log = PrepareLog(path)
    log.refresh()
    path.unlink()
    write_log(tmp_path, {**start(7), "t": 9.0})
    with open(path, "ab") as file:
        file.write(b'{"kind": "prepare_pro\n[1]\n\xff\xfe\n{"kind": "prepare_progress", "seconds": "x"}\n{"kind"')
    log.refresh()
    assert log.start is not None
    assert log.start.tasks == 7
    assert log.progress is None
    assert log.rate.as_dict() == {"seconds": [], "mb_per_s": []}


def test_the_rate_over_several_runs_and_engines(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        start(),
        progress(1.0, 9_000_000),
        start(),  # nothing of it was finished: a beginning
        progress(1.0, 1_000_000),
        progress(2.0, 2_000_000),
        start(resumed=1),
        progress(0.5, 1_500_000),  # half a MB of the first run was lost
        progress(1.0, 2_500_000),
        progress(0.5, 500_000),  # done again with another engine
        progress(1.0, 1_500_000),
    )
    log = PrepareLog(tmp_path / ".headrace" / "events.jsonl")
    log.refresh()
    expected = {"seconds": [1.0, 2.0, 2.5, 3.0, 3.5, 4.0], "mb_per_s": [1.0, 1.0, 0.0, 2.0, 0.0, 2.0]}
    assert log.rate.as_dict() == expected


def test_the_rate_of_days_is_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_log, "MAX_POINTS", 20)
    rate = Rate()
    for second in range(1, 1001):
        rate.add(float(second), second * 3_000_000)
    found = rate.as_dict()
    assert 5 < len(found["seconds"]) <= 20
    assert found["mb_per_s"] == [3.0] * len(found["seconds"])
    assert found["seconds"][-1] >= 990


def test_ranges() -> None:
    assert parse_ranges("", 5) == set()
    assert parse_ranges("0-2,4", 10) == {0, 1, 2, 4}
    assert parse_ranges("3-999999999999", 5) == {3, 4}
    assert parse_ranges("x,1-,-3,2-1,1.5,٣", 5) == set()


def test_few_logs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_progress, "KEPT", 2)
    kept = Preparations()
    first = kept.of(tmp_path / "a")
    assert kept.of(tmp_path / "a") is first
    kept.of(tmp_path / "b")
    kept.of(tmp_path / "c")
    assert kept.of(tmp_path / "a") is not first
