from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import DataRejected
from headrace.sources import open_source

TEXTS = [f"document {number} ä🎉" * (number % 7) for number in range(1000)]
EXPECTED = [text.encode() for text in TEXTS]
TABLE = pa.table({"id": range(1000), "text": TEXTS})


def write(path, table, new_writer):
    with new_writer(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return path


@pytest.fixture(params=["file", "stream"])
def new_writer(request):
    return {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}[request.param]


@pytest.mark.parametrize("ending", [".arrow", ".feather"])
def test_round_trip(tmp_path, suffix, compress, read_all, new_writer, ending):
    plain = write(tmp_path / "plain", TABLE, new_writer)
    path = tmp_path / f"a{ending}{suffix}"
    path.write_bytes(compress(suffix, plain.read_bytes()))
    for target in (1, 20_000, 1 << 30):
        assert read_all(path, target=target) == (EXPECTED, [])


def test_a_file_is_split_and_a_stream_is_not(tmp_path):
    file = write(tmp_path / "a.arrow", TABLE, pa.ipc.new_file)
    stream = write(tmp_path / "b.arrow", TABLE, pa.ipc.new_stream)
    assert len(open_source(file).spans(1)) == 10
    assert len(open_source(stream).spans(1)) == 1


def test_rows_are_numbered_in_the_whole_file(tmp_path, read_all, new_writer):
    table = pa.table({"text": [None if number == 555 else "x" for number in range(1000)]})
    path = write(tmp_path / "a.arrow", table, new_writer)
    for target in (1, 1 << 30):
        assert read_all(path, target=target).rejects == [(str(path), "row 556", "the text is null")]


def test_a_nested_column(tmp_path, read_all, new_writer):
    path = write(tmp_path / "a.arrow", pa.table({"x": [1], "meta": [{"text": "m"}]}), new_writer)
    assert read_all(path, text_field="meta.text").texts == [b"m"]


@pytest.mark.parametrize("lost", [1, 8, 3000])
def test_a_cut_file_is_damage(tmp_path, read_all, new_writer, lost):
    path = write(tmp_path / "a.arrow", TABLE, new_writer)
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(DataRejected, match=r"is damaged at .*--keep-damaged"):
        read_all(path)
    kept = read_all(path, keep_damaged=True)
    assert kept.texts == EXPECTED[: len(kept.texts)]
    assert len(kept.rejects) == 1
    if new_writer is pa.ipc.new_stream:
        assert len(kept.texts) >= 900 or lost > 8


def test_an_empty_file_is_damage(tmp_path, read_all):
    path = tmp_path / "a.arrow"
    path.write_bytes(b"")
    with pytest.raises(DataRejected, match="is damaged at byte 0"):
        read_all(path)
