from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import DataRejected, UsageError
from headrace.sources import open_source, read_span

TEXTS = [f"document {number} ä🎉 {number * 2654435761 % (1 << 32):x}" * (number % 20) for number in range(5000)]
EXPECTED = [text.encode() for text in TEXTS]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(5000), "text": TEXTS}), path, row_group_size=300, compression="zstd")
    return path


def test_round_trip(path, tmp_path, suffix, compress, read_all):
    other = tmp_path / f"b.parquet{suffix}"
    other.write_bytes(compress(suffix, path.read_bytes()))
    assert read_all(other) == (EXPECTED, [])


def test_the_documents_do_not_depend_on_the_target(path, read_all):
    for target in (1, 10_000, 50_000, 1 << 30):
        assert read_all(path, target=target).texts == EXPECTED
    assert len(open_source(path).spans(1)) == 17
    assert 2 < len(open_source(path).spans(10_000)) < 17


def test_rows_are_numbered_in_the_whole_file(tmp_path, read_all):
    path = tmp_path / "a.parquet"
    texts = [None if number % 1000 == 999 else "x" for number in range(5000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=300)
    for target in (1, 1 << 30):
        rejects = read_all(path, target=target).rejects
        assert [reject.where for reject in rejects] == [f"row {number}" for number in range(1000, 5001, 1000)]


def test_a_span_of_one_group_reads_that_group_only(path):
    span = open_source(path).spans(1)[3]
    (batch,) = read_span(span, open_source(path).options)
    assert batch.texts == EXPECTED[900:1200]
    assert batch.input_bytes == span.size


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"body": ["a"], "id": [1]}, {}, "none of the columns text, content, .*its columns: body, id.*--text-field"),
        ({"text": ["a"]}, {"text_field": "body"}, "no column 'body'.*its columns: text"),
        ({"text": [1]}, {}, "Column 'text' of .* holds int64, not text"),
        ({"meta": [{"a": "x"}]}, {"text_field": "meta.b"}, "no column 'meta.b'"),
    ],
)
def test_a_file_with_no_text_column_is_a_usage_error(tmp_path, read_all, columns, options, message):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(UsageError, match=message):
        read_all(path, **options)


def test_the_column_is_found_named_or_nested(tmp_path, read_all):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"title": ["t"], "content": ["c"], "meta": [{"text": "m", "x": 1}]}), path)
    assert read_all(path).texts == [b"c"]
    assert read_all(path, text_field="title").texts == [b"t"]
    assert read_all(path, text_field="meta.text").texts == [b"m"]


def test_dictionary_columns(tmp_path, read_all):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array(["a", "b", "a"]).dictionary_encode()}), path)
    assert read_all(path).texts == [b"a", b"b", b"a"]


@pytest.mark.parametrize("kept", [0, 3, 5000])
def test_a_cut_file_is_damage_when_planned_or_read(path, read_all, kept):
    path.write_bytes(path.read_bytes()[:kept])
    for target in (1, 1 << 30):
        with pytest.raises(DataRejected, match=r"is damaged at its footer: .*--keep-damaged to keep the 0 documents"):
            read_all(path, target=target)
        kept_result = read_all(path, target=target, keep_damaged=True)
        assert kept_result.texts == []
        assert [reject.where for reject in kept_result.rejects] == ["its footer"]


def test_a_corrupt_page_is_damage_at_its_row(path, read_all):
    data = bytearray(path.read_bytes())
    middle = pq.ParquetFile(path).metadata.row_group(8).column(1).data_page_offset
    data[middle : middle + 100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises(DataRejected, match="is damaged at row"):
        read_all(path)
    kept = read_all(path, target=1, keep_damaged=True)
    assert kept.texts == EXPECTED[:2400] + EXPECTED[2700:]
    assert [reject.where for reject in kept.rejects] == ["row 2401"]


def test_no_rows(tmp_path, read_all):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    assert read_all(path) == ([], [])
