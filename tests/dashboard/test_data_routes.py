"""/api/data over HTTP: answers as the contract has them, errors as JSON, nothing from outside the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dataset import random_documents, write_dataset
from starlette.applications import Starlette
from starlette.testclient import TestClient

from conftest_pipeline import write_jsonl
from headrace import prepare
from headrace.dashboard.data_routes import DataPages, routes
from headrace.storage import TokenStore

TEXTS = [
    "<script>alert(1)</script>",
    "日本語 \x00 \u202e",
    *(f"Document {i} of the mill. " * (i + 1) for i in range(40)),
]


@dataclass
class Folders:
    data: Path
    extra: dict[str, Path] = field(default_factory=dict)

    def extra_datasets(self) -> Mapping[str, Path]:
        return self.extra


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dashboard")
    source = write_jsonl(root / "mill.jsonl", TEXTS)
    prepare(source, out=root / "data" / "mill", chunk_size=64, val_fraction=0.3, task_bytes=4000)
    prepare(source, out=root / "data" / "group" / "bytes", tokenizer="bytes", chunk_size=64)
    prepare(source, out=root / "secret", tokenizer="bytes")
    return root


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(Folders(folder / "data")))) as opened:
        yield opened


def get(client: TestClient, path: str, status: int = 200) -> dict[str, Any]:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def test_a_dataset(client: TestClient, folder: Path) -> None:
    found = get(client, "/api/data/mill")
    store = TokenStore(folder / "data" / "mill")
    assert found["dataset"]["name"] == "mill"
    assert found["dataset"]["state"] == "ready"
    assert [split["name"] for split in found["splits"]] == ["train", "val"]
    assert found["splits"][0]["tokens"] == store.total_tokens
    assert found["splits"][0]["chunks"] == store.num_chunks
    assert sum(shard["tokens"] for shard in found["shards"]) == found["dataset"]["tokens"]
    assert len(found["shards"]) == found["shards_total"] == len(store.metadata.shards)
    assert sum(found["lengths"]["counts"]) == store.num_documents
    assert found["metadata"]["chunk_size"] == 64
    assert found["metadata"]["sources_total"] == 1
    assert "shards" not in found["metadata"]
    assert found["prepare"]["state"] == "ready"
    assert found["prepare"]["share"] == 1.0
    other = get(client, "/api/data/mill?split=val")
    assert sum(other["lengths"]["counts"]) == found["splits"][1]["documents"]


def test_a_nested_name(client: TestClient) -> None:
    assert get(client, "/api/data/group/bytes")["dataset"]["tokenizer"] == "bytes"
    assert get(client, "/api/data/group/bytes/chunk?size=16")["size"] == 16
    assert get(client, "/api/data/group%2Fbytes/frequency?top=3")["vocab_size"] == 259


def test_a_chunk(client: TestClient, folder: Path) -> None:
    store = TokenStore(folder / "data" / "mill", split="val")
    found = get(client, "/api/data/mill/chunk?split=val&index=1&size=32")
    assert (found["index"], found["size"], found["chunks"]) == (1, 32, -(-store.total_tokens // 32))
    ids = [token["id"] for token in found["tokens"]]
    assert ids == store.tokens(32, 64).tolist()
    assert "".join(token["text"] for token in found["tokens"]) == store.decode(ids)
    number = get(client, "/api/data/mill/chunk?split=val&document=3&size=32")
    assert 3 in [document["number"] for document in number["documents"] if document["begins"]]


def test_frequency_is_counted_once(client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = get(client, "/api/data/mill/frequency?top=5")
    assert len(found["top"]) == 5
    assert found["counted"] == TokenStore(folder / "data" / "mill").total_tokens
    monkeypatch.setattr("headrace.dashboard.data_routes.count_tokens", None)
    assert get(client, "/api/data/mill/frequency?top=2")["top"] == found["top"][:2]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("chunk?size=9", 400, "16 to 8,192"),
        ("chunk?size=x", 400, "whole number"),
        ("chunk?size=", 400, "whole number"),
        ("chunk?size=1e3", 400, "whole number"),
        ("chunk?index=%D9%A3", 400, "whole number"),
        ("chunk?index=" + "9" * 5000, 400, "whole number"),
        ("chunk?index=-1", 404, "numbered from 0"),
        ("chunk?index=999999", 404, "numbered from 0"),
        ("chunk?document=999999", 404, "numbered from 0"),
        ("chunk?split=test", 404, "train, val"),
        ("chunk?split=../x", 404, "train, val"),
        ("frequency?top=0", 400, "1 to 500"),
        ("frequency?top=9999999999", 400, "1 to 500"),
    ],
)
def test_a_question_that_cannot_be_answered(client: TestClient, query: str, status: int, said: str) -> None:
    found = get(client, f"/api/data/mill/{query}", status)
    assert said in found["error"]
    assert "Traceback" not in found["error"]


@pytest.mark.parametrize(
    "name",
    [
        "nowhere",
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "mill/../../secret",
        "mill/",
        "/mill",
        ".",
        "..",
        "mill%00",
        "group",
        "mill/.headrace",
        "link",
        "%ED%A0%80",
    ],
)
@pytest.mark.parametrize("end", ["", "/chunk", "/frequency"])
def test_only_names_of_the_list_are_answered(client: TestClient, folder: Path, name: str, end: str) -> None:
    link = folder / "data" / "link"
    if not link.is_symlink():
        link.symlink_to(folder / "secret")
    answer = client.get(f"/api/data/{name}{end}")
    assert answer.status_code == 404
    assert "mill.jsonl" not in answer.text


def test_an_absolute_path_is_no_name(client: TestClient, folder: Path) -> None:
    assert client.get(f"/api/data/{folder / 'secret'}").status_code == 404


def test_only_asked_and_never_told(client: TestClient) -> None:
    assert client.post("/api/data/mill").status_code == 405


def test_datasets_that_runs_name(folder: Path) -> None:
    extra = {"../secret": folder / "secret", "again": folder / "data" / "mill", "gone": folder / "gone"}
    context = Folders(folder / "data", extra)
    pages = DataPages(context)
    assert list(pages.datasets()) == ["group/bytes", "mill", "../secret"]
    assert [row["name"] for row in pages.summaries()] == ["group/bytes", "mill", "../secret"]
    assert pages.chunk("../secret", {})["index"] == 0


def test_a_dataset_that_is_written_anew_is_opened_anew(tmp_path: Path) -> None:
    pages = DataPages(Folders(tmp_path))
    write_dataset(tmp_path / "a", [random_documents(1, 30)])
    (tmp_path / "a" / "tokenizer").mkdir()
    (tmp_path / "a/tokenizer/headrace-tokenizer.json").write_text(
        '{"kind": "bytes", "name": "bytes", "file": "", "special": {"eos": 256}, "vocab_size": 259}'
    )
    first = pages.chunk("a", {"size": "16"})
    assert pages.frequency("a", {})["counted"] == first["total_tokens"]
    write_dataset(tmp_path / "a", [random_documents(2, 90)])
    second = pages.chunk("a", {"size": "16"})
    assert second["total_documents"] == 90
    assert pages.frequency("a", {})["counted"] == second["total_tokens"] != first["total_tokens"]
    assert sum(pages.dataset("a", {})["lengths"]["counts"]) == 90


def test_damage_is_said_and_does_not_end_the_server(tmp_path: Path, folder: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", TEXTS)
    prepare(source, out=tmp_path / "data" / "a", tokenizer="bytes")
    prepare(source, out=tmp_path / "data" / "b", tokenizer="bytes")
    os.truncate(tmp_path / "data/a/shard-00000.bin", 100)
    (tmp_path / "data/b/shard-00000.idx").unlink()
    (tmp_path / "data/c").mkdir()
    (tmp_path / "data/c/metadata.json").write_text("{}")
    with TestClient(Starlette(routes=routes(Folders(tmp_path / "data")))) as client:
        assert "50 tokens" in get(client, "/api/data/a/chunk", 400)["error"]
        assert "50 tokens" in get(client, "/api/data/a/frequency", 400)["error"]
        assert "is missing" in get(client, "/api/data/b")["dataset"]["problem"]
        assert get(client, "/api/data/b")["splits"]
        assert "is missing" in get(client, "/api/data/b/chunk", 400)["error"]
        assert "not a Headrace manifest" in get(client, "/api/data/c")["dataset"]["problem"]
        assert "not a Headrace manifest" in get(client, "/api/data/c/chunk", 400)["error"]
