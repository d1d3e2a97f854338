"""A run over files on the hub stays at its commit, and goes on without being told the files again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest_hub import jsonl, long_texts, make_texts, parquet
from conftest_pipeline import content
from headrace import prepare
from headrace.errors import UsageError
from headrace.pipeline import Progress
from hub_server import HubServer

SETTINGS: dict[str, Any] = {"tokenizer": "bytes", "task_bytes": 60_000, "chunk_size": 64}
FILES = {
    "a.parquet": parquet(long_texts(40), 10),
    "b.parquet": parquet(long_texts(30, seed=1), 10),
}


class Listener:
    """Hears what a run says, and may stop it once some tasks are done."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.said: list[str] = []
        self._stop_after = stop_after

    def notice(self, text: str) -> None:
        self.said.append(text)

    def progress(self, progress: Progress) -> None:
        if progress.tasks_done == self._stop_after:
            raise KeyboardInterrupt


def interrupt(out: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare("hf://datasets/o/n", out=out, observer=Listener(stop_after=2), **SETTINGS)
    assert (out / ".headrace" / "task-00001.json").is_file()
    assert not (out / ".headrace" / "task-00002.json").is_file()


def test_a_moved_branch_and_a_hub_that_lists_nothing(stand_in: HubServer, tmp_path: Path) -> None:
    commit = stand_in.push("datasets", "o/n", FILES)
    prepare("hf://datasets/o/n", out=tmp_path / "whole", **SETTINGS)
    out = tmp_path / "out"
    interrupt(out)
    assert json.loads((out / ".headrace" / "plan.json").read_bytes())["sources"][0]["revision"] == commit
    stand_in.push("datasets", "o/n", {"a.parquet": parquet(make_texts(9), 9)})
    stand_in.fail("/api/", "500", 99)
    before, notices = len(stand_in.requests), Listener()
    store = prepare("hf://datasets/o/n", out=out, observer=notices, **SETTINGS)
    assert content(out) == content(tmp_path / "whole")
    assert {source.revision for source in store.metadata.sources} == {commit}
    assert f"o/n stays at commit {commit[:12]}, as it was begun with; --force takes the newest." in notices.said
    assert any(notice.startswith("Going on:") for notice in notices.said)
    assert not [request for request in stand_in.requests[before:] if "/api/" in request.path]


def test_what_is_done_needs_no_hub(stand_in: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = stand_in.push("datasets", "o/n", FILES)
    prepare("hf://datasets/o/n", out=tmp_path / "out", **SETTINGS)
    second = stand_in.push("datasets", "o/n", {"a.parquet": parquet(make_texts(9), 9)})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    notices = Listener()
    store = prepare("hf://datasets/o/n", out=tmp_path / "out", observer=notices, **SETTINGS)
    assert store.metadata.sources[0].revision == first
    assert any("prepared already" in notice for notice in notices.said)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    store = prepare("hf://datasets/o/n", out=tmp_path / "out", force=True, **SETTINGS)
    assert {source.revision for source in store.metadata.sources} == {second}


def test_offline_with_copies_in_the_cache(stand_in: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import hf_hub_download

    commit = stand_in.push("datasets", "o/n", FILES)
    prepare("hf://datasets/o/n", out=tmp_path / "whole", **SETTINGS)
    out = tmp_path / "out"
    interrupt(out)
    hf_hub_download("o/n", "b.parquet", repo_type="dataset", revision=commit, endpoint=stand_in.endpoint)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    prepare("hf://datasets/o/n", out=out, **SETTINGS)
    assert content(out) == content(tmp_path / "whole")


def test_another_revision_is_another_dataset(stand_in: HubServer, tmp_path: Path) -> None:
    first = stand_in.push("datasets", "o/n", {"a.jsonl": jsonl(make_texts(9))}, "v1")
    stand_in.push("datasets", "o/n", {"a.jsonl": jsonl(make_texts(8))})
    prepare("hf://datasets/o/n", out=tmp_path / "out", **SETTINGS)
    with pytest.raises(UsageError, match=f"source hf://datasets/o/n@{first}/a.jsonl: not there then"):
        prepare("hf://datasets/o/n", out=tmp_path / "out", revision="v1", **SETTINGS)
    prepare("hf://datasets/o/n", out=tmp_path / "out", **SETTINGS)


def test_a_run_without_a_hub_has_no_record(corpus: Path, tmp_path: Path) -> None:
    prepare(corpus, out=tmp_path / "out", **SETTINGS)
    assert not (tmp_path / "out" / ".headrace" / "hub.json").exists()
