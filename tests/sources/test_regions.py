from __future__ import annotations

import pytest

from headrace.sources import regions
from headrace.sources.regions import count_newlines, document_start, region
from headrace.sources.span import Span


@pytest.mark.parametrize("scan", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize(
    ("content", "mark", "starts"),
    [
        (b"ab\ncd\n\ne", b"\n", [0, 3, 3, 3, 6, 6, 6, 7, 8]),
        (b"ab\ncd\n", b"\n", [0, 3, 3, 3, 6, 6, 6]),
        (b"a<>b<>", b"<>", [0, 3, 3, 3, 6, 6, 6]),
        (b"<>a", b"<>", [0, 2, 2, 3]),
    ],
)
def test_the_first_document_that_begins_at_or_after_each_offset(tmp_path, monkeypatch, content, mark, starts, scan):
    monkeypatch.setattr(regions, "SCAN_BYTES", scan)
    path = tmp_path / "a"
    path.write_bytes(content)
    with open(path, "rb", buffering=0) as file:
        assert [document_start(file, offset, len(content), mark) for offset in range(len(content) + 1)] == starts


def test_a_span_owns_the_lines_that_begin_in_it(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"ab\ncd\nef\n")
    assert region(str(path), Span(str(path), "jsonl", 3, None, 3, 6), b"\n") == (3, 6)
    assert region(str(path), Span(str(path), "jsonl", 3, None, 2, 4), b"\n") == (3, 6)
    assert region(str(path), Span(str(path), "jsonl", 1, None, 4, 5), b"\n") == (6, 6)
    assert region(str(path), Span(str(path), "jsonl", 9), b"\n") == (0, None)


def test_count_newlines(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"a\nb\nc\n")
    assert [count_newlines(str(path), stop) for stop in (0, 1, 2, 4, 6, 99)] == [0, 0, 1, 2, 3, 3]
