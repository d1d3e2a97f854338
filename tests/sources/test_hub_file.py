"""Files on the hub, read by ranges: the same documents as from a disk, from a small part of the bytes."""

from __future__ import annotations

import gzip
import io
import os

import pyarrow as pa
import pytest

from conftest_hub import jsonl, long_texts, parquet, zst
from headrace.errors import HeadraceError, SourceNotFound, Unreachable
from headrace.sources import hub_file, open_source, read_spans
from headrace.sources.hub_file import HubFile, merge
from hub_server import HubServer

TEXTS = long_texts(150)


def arrow_bytes(texts: list[str], kind: str) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"text": texts})
    open_writer = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with open_writer(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=40)
    return sink.getvalue()


FILES = {
    "a.jsonl": jsonl(TEXTS),
    "a.jsonl.zst": zst(jsonl(TEXTS)),
    "a.jsonl.gz": gzip.compress(jsonl(TEXTS)),
    "a.parquet": parquet(TEXTS, 15),
    "a.parquet.gz": gzip.compress(parquet(TEXTS, 15)),
    "file.arrow": arrow_bytes(TEXTS, "file"),
    "stream.arrow": arrow_bytes(TEXTS, "stream"),
    "a.txt": "\n\n".join(TEXTS).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_in_pieces(name: str, stand_in: HubServer, monkeypatch: pytest.MonkeyPatch, read_all):
    monkeypatch.setattr(hub_file, "FIRST_BLOCK", 10_000)
    monkeypatch.setattr(hub_file, "LARGEST_BLOCK", 70_000)
    stand_in.push("datasets", "o/n", {name: FILES[name]})
    options = {"separator": "\n\n"} if name == "a.txt" else {}
    result = read_all("hf://datasets/o/n", target=100_000, **options)
    assert result.texts == [text.encode() for text in TEXTS]
    assert not result.rejects
    ranges = [request for request in stand_in.asked("/resolve/") if request.method == "GET"]
    assert len(ranges) > 3
    assert {request.status for request in ranges} == {206}
    assert max(request.sent for request in ranges) <= 70_000


def test_a_parquet_file_is_cut_by_row_groups_and_other_columns_stay_there(stand_in: HubServer, monkeypatch):
    monkeypatch.setattr(hub_file, "SMALL_HOLE", 1_000)
    data = parquet(TEXTS, 15, vector=[os.urandom(20_000) for _ in TEXTS])
    stand_in.push("datasets", "o/n", {"a.parquet": data})
    source = open_source("hf://datasets/o/n")
    spans = source.spans(len(data) * 15 // 100)
    assert len(spans) == 5
    texts = [text for batch in read_spans([spans[3]], source.options) for text in batch.texts]
    assert texts == [text.encode() for text in TEXTS[90:120]]
    assert stand_in.sent() < 0.1 * len(data)
    assert len(stand_in.asked("/resolve/")) == 5  # where it is, the footer twice, two row groups


def test_many_files_are_not_opened_to_be_planned(stand_in: HubServer):
    stand_in.push("datasets", "o/n", {f"{number}.parquet": parquet(TEXTS[:20], 2) for number in range(17)})
    assert len(open_source("hf://datasets/o/n").spans(10_000)) == 17
    assert stand_in.asked("/resolve/") == []


def test_a_compressed_file_is_not_fetched_by_several(stand_in: HubServer):
    stand_in.push("datasets", "o/n", {"a.jsonl.zst": FILES["a.jsonl.zst"]})
    assert len(open_source("hf://datasets/o/n").spans(10_000)) == 1


@pytest.mark.parametrize("fault", ["503", "429", "cut"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.jsonl.zst"])
def test_trouble_changes_no_byte(name: str, fault: str, stand_in: HubServer, monkeypatch: pytest.MonkeyPatch, read_all):
    monkeypatch.setattr(hub_file, "FIRST_BLOCK", 50_000)
    stand_in.push("datasets", "o/n", {name: FILES[name]})
    stand_in.fail("/resolve/", fault, 3)
    assert read_all("hf://datasets/o/n").texts == [text.encode() for text in TEXTS]
    assert not any(left.left for left in stand_in.faults)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "file.arrow"])
def test_trouble_that_does_not_end_is_an_error(name: str, stand_in: HubServer):
    stand_in.push("datasets", "o/n", {name: FILES[name]})
    source = open_source("hf://datasets/o/n")
    spans = source.spans(1 << 30)
    stand_in.fail("/resolve/", "503", 99)
    with pytest.raises(Unreachable, match=r"'o/n' at .*503 Service Unavailable"):
        list(read_spans(spans, source.options))


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_stall_ends_at_the_time_limit(name: str, stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headrace.hub.WAITS", ())
    stand_in.push("datasets", "o/n", {name: FILES[name]})
    source = open_source("hf://datasets/o/n")
    spans = source.spans(1 << 30)
    hub_file.find_place(spans[0].path)
    stand_in.fail("/resolve/", "stall")
    with pytest.raises(Unreachable, match="gave no answer for 1 s"):
        list(read_spans(spans, source.options))


def test_an_empty_file(stand_in: HubServer, read_all):
    stand_in.push("datasets", "o/n", {"a.jsonl": b""})
    result = read_all("hf://datasets/o/n")
    assert (result.texts, result.rejects[0].reason) == ([], "empty file")


def test_a_file_that_is_gone(stand_in: HubServer):
    stand_in.push("datasets", "o/n", {"a.jsonl": b"1"})
    source = open_source("hf://datasets/o/n")
    stand_in.repos["datasets", "o/n"].commits[source.files[0].revision].clear()
    with pytest.raises(SourceNotFound, match=f"has no such file.*Look at {stand_in.endpoint}/datasets/o/n"):
        list(read_spans(source.spans(10), source.options))


def test_a_hub_without_ranges_is_said_so(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    from hub_server import Answer

    def whole(self, data, headers):
        self.send(200, data, headers)

    monkeypatch.setattr(Answer, "give_bytes", whole)
    monkeypatch.setattr(hub_file, "FIRST_BLOCK", 1_000)
    stand_in.push("datasets", "o/n", {"a.jsonl": FILES["a.jsonl"]})
    source = open_source("hf://datasets/o/n")
    with pytest.raises(HeadraceError, match=r"cannot be streamed.*hf download o/n a.jsonl --repo-type dataset"):
        list(read_spans(source.spans(1 << 30), source.options))


def test_seeking(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_file, "FIRST_BLOCK", 100)
    data = bytes(range(256)) * 40
    commit = stand_in.push("datasets", "o/n", {"a.txt": data})
    with io.BufferedReader(HubFile(f"hf://datasets/o/n@{commit}/a.txt"), 64) as file:
        for start, size in [(0, 10), (9_000, 2_000), (5, 300), (len(data), 5), (len(data) - 3, 9)]:
            file.seek(start)
            assert file.read(size) == data[start : start + size]
        assert file.seek(-4, os.SEEK_END) == len(data) - 4
        assert file.read() == data[-4:]


def test_ranges_with_small_holes_are_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_file, "SMALL_HOLE", 10)
    assert merge([(50, 60), (0, 5), (15, 20), (31, 40)]) == [(0, 20), (31, 60)]
    assert merge([]) == []
