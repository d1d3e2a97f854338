from __future__ import annotations

import pytest

from headrace.errors import DataRejected, HeadraceError
from headrace.sources import open_source, read_span, read_spans


def test_small_files_share_a_batch(tmp_path):
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(f"file {number}")
    source = open_source(tmp_path)
    (batch,) = read_spans(source.spans(1 << 20), source.options)
    assert batch.texts == [b"file %d" % number for number in range(30)]
    assert batch.input_bytes == source.total_bytes


def test_batches_close_at_either_limit(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "12345"}\n' * 100)
    (span,) = open_source(path).spans(1 << 20)
    options = open_source(path).options
    assert [len(b.texts) for b in read_span(span, options, batch_documents=40)] == [40, 40, 20]
    assert [len(b.texts) for b in read_span(span, options, batch_bytes=250)] == [50, 50]


def test_a_file_that_vanished_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{}")
    source = open_source(path)
    path.unlink()
    with pytest.raises(HeadraceError, match=r"a.jsonl cannot be read: No such file"):
        list(read_span(source.spans(9)[0], source.options))


def test_damage_counts_the_documents_of_its_own_file(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n' * 10)
    (tmp_path / "b.json").write_text('["y", "z", ')
    source = open_source(tmp_path)
    with pytest.raises(DataRejected, match=r"b.json is damaged at byte 11.*keep the 2 documents before the damage"):
        list(read_spans(source.spans(1 << 20), source.options))


def test_after_damage_that_is_kept_the_next_file_is_read(tmp_path, read_all):
    (tmp_path / "a.json").write_text('["y", "z", ')
    (tmp_path / "b.jsonl").write_text('{"text": "x"}\n')
    source = open_source(tmp_path, keep_damaged=True)
    (batch,) = read_spans(source.spans(1 << 20), source.options)
    assert batch.texts == [b"y", b"z", b"x"]
    assert len(batch.rejects) == 1
    assert batch.input_bytes == source.total_bytes
