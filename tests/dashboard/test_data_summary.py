"""The list of datasets: finished ones, begun ones, damaged ones, and nothing from outside the folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from dataset import random_documents, write_dataset

from headrace import prepare
from headrace.dashboard import data_summary
from headrace.dashboard.data_folder import DataFolder, find_datasets
from headrace.dashboard.data_summary import dataset_summaries
from headrace.telemetry import encode_json

FIELDS = {
    "name",
    "state",
    "tokens",
    "documents",
    "chunks",
    "chunk_size",
    "tokenizer",
    "bytes",
    "shards",
    "share",
    "eta_seconds",
    "mb_per_s",
    "updated",
    "problem",
}


def small(folder: Path, seed: int = 0) -> Path:
    write_dataset(folder, [random_documents(seed, 30)])
    return folder


def by_name(folder: Path) -> dict[str, dict[str, Any]]:
    rows = dataset_summaries(folder)
    assert all(row.keys() == FIELDS for row in rows)
    return {row["name"]: row for row in rows}


def test_a_real_dataset(tmp_path: Path) -> None:
    store = prepare("python-stdlib", out=tmp_path / "stdlib", max_chunks=60, chunk_size=256, val_fraction=0.4)
    row = by_name(tmp_path)["stdlib"]
    metadata = store.metadata
    assert row["state"] == "ready"
    assert row["tokens"] == metadata.total_tokens + metadata.val_tokens > 60 * 256
    assert row["documents"] == metadata.documents + metadata.val_documents
    assert (row["chunks"], row["chunk_size"], row["share"], row["problem"]) == (60, 256, 1.0, None)
    assert row["tokenizer"] == "headrace-32k"
    assert row["bytes"] == sum(path.stat().st_size for path in (tmp_path / "stdlib").glob("*.bin"))
    assert row["shards"] == len(metadata.shards)
    assert row["updated"] == pytest.approx((tmp_path / "stdlib/metadata.json").stat().st_mtime)


def test_an_empty_folder_and_none_at_all(tmp_path: Path) -> None:
    assert dataset_summaries(tmp_path) == []
    assert dataset_summaries(tmp_path / "nowhere") == []


def test_the_folder_of_one_dataset(tmp_path: Path) -> None:
    small(tmp_path / "one")
    assert list(find_datasets(tmp_path / "one")) == ["one"]


def test_nested_three_deep_and_no_deeper(tmp_path: Path) -> None:
    for name in ("a", "group/b", "group/part/c", "group/part/sub/d", ".hidden/e"):
        small(tmp_path / name)
    (tmp_path / "file").write_text("no folder")
    assert list(by_name(tmp_path)) == ["a", "group/b", "group/part/c"]


def test_links_count_only_if_they_stay_inside(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    small(inside / "real")
    small(tmp_path / "outside" / "secret")
    (inside / "escape").symlink_to(tmp_path / "outside")
    (inside / "direct").symlink_to(tmp_path / "outside" / "secret")
    (inside / "loop").symlink_to(inside)
    (inside / "again").symlink_to(inside / "real")
    (inside / "nowhere").symlink_to(tmp_path / "missing")
    small(inside / "deep" / "er" / "one")
    (inside / "short").symlink_to(inside / "deep" / "er" / "one")
    names = list(by_name(inside))
    assert "real" in names
    assert not {"escape/secret", "direct", "loop/real", "again", "nowhere"} & set(names)
    assert all(path.is_relative_to(inside) for path in find_datasets(inside).values())
    assert len(set(find_datasets(inside).values())) == len(names) == 2


def test_a_sibling_whose_name_begins_the_same_is_outside(tmp_path: Path) -> None:
    small(tmp_path / "data-private" / "x")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").symlink_to(tmp_path / "data-private" / "x")
    assert by_name(tmp_path / "data") == {}


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    small(Path(os.fsdecode(folder)))
    (name,) = by_name(tmp_path)
    assert name == "caf\ufffd"
    encode_json(dataset_summaries(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b"\xff\xfe",
        b'{"format_version": 99}',
        b"null",
        b'{"shards": "no"}',
        b"{" * 5000,
        b'{"total_tokens": 1e400}',
    ],
)
def test_a_damaged_manifest_is_a_row_that_says_so(tmp_path: Path, content: bytes) -> None:
    small(tmp_path / "good")
    small(tmp_path / "bad")
    (tmp_path / "bad" / "metadata.json").write_bytes(content)
    rows = by_name(tmp_path)
    assert rows["good"]["problem"] is None
    assert rows["bad"]["problem"]
    assert (rows["bad"]["state"], rows["bad"]["tokens"]) == ("stopped", None)


def test_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    small(tmp_path / "bad")
    (tmp_path / "bad" / "metadata.json").unlink()
    (tmp_path / "bad" / "metadata.json").symlink_to("metadata.json")
    assert by_name(tmp_path).get("bad", {}).get("state") in (None, "stopped")


def test_nothing_is_read_again_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "a")
    first = by_name(tmp_path)
    reads: list[Path] = []
    whole = data_summary.read_metadata
    monkeypatch.setattr(data_summary, "read_metadata", lambda folder: (reads.append(folder), whole(folder))[1])
    assert by_name(tmp_path) == first
    assert reads == []
    path = tmp_path / "a" / "metadata.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "documents": 99}))
    assert by_name(tmp_path)["a"]["documents"] == 99
    assert len(reads) == 1


def test_a_folder_is_not_searched_for_each_question(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert folder.datasets() == {}
    small(tmp_path / "new")
    assert folder.datasets() == {}
    folder._looked -= 1
    assert list(folder.datasets()) == ["new"]


def test_a_folder_is_listed_again_when_it_changes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        small(tmp_path / name)
    os.utime(tmp_path, (1000, 1000))  # long ago: what was listed then still holds
    assert list(find_datasets(tmp_path)) == ["a", "b"]
    small(tmp_path / "c")
    assert list(find_datasets(tmp_path)) == ["a", "b", "c"]
    (tmp_path / "link").symlink_to(tmp_path / "later" / "x")
    os.utime(tmp_path, (2000, 2000))
    assert list(find_datasets(tmp_path)) == ["a", "b", "c"]
    small(tmp_path / ".kept" / "x")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / ".kept")
    assert list(find_datasets(tmp_path)) == ["a", "b", "c", "link/x"]
    os.utime(tmp_path, (3000, 3000))
    assert list(find_datasets(tmp_path)) == ["a", "b", "c", "link/x"]
    (tmp_path / ".kept").rename(tmp_path / ".gone")
    os.utime(tmp_path, (3000, 3000))  # where a link leads is looked at each time
    assert list(find_datasets(tmp_path)) == ["a", "b", "c"]
