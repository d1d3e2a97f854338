from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import DataRejected
from headrace.sources import ReadOptions, Span, open_source, read_span
from headrace.sources.jsonl import complete_lines


def lines(*texts, field="text"):
    return b"".join(json.dumps({"id": 1, field: text}, ensure_ascii=False).encode() + b"\n" for text in texts)


def test_round_trip(tmp_path, suffix, compress, read_all):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(compress(suffix, lines("one", "zwei äö", "三\u0000\n🎉", "")))
    assert read_all(path).texts == [b"one", "zwei äö".encode(), "三\0\n🎉".encode(), b""]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a"', "broken JSON"),
        (b'{"text": "a"} {"text": "b"}', "broken JSON: Extra data"),
        (b'{"body": "a", "id": 3}', "no field 'text' (fields found: body, id); name the text field with --text-field"),
        (b'{"text": null}', "field 'text' is null"),
        (b'{"text": 5}', "field 'text' is a number instead of text"),
        (b'{"text": true}', "field 'text' is true or false instead of text"),
        (b'{"text": ["a"]}', "field 'text' is a list instead of text"),
        (b'{"text": "a\xff"}', "invalid UTF-8 at byte 11"),
        (b'{"text": "\xed\xa0\x80"}', "invalid UTF-8 at byte 10"),
        (rb'{"text": "\ud800"}', "lone surrogate \\ud800 in field 'text'"),
        (b'["a"]', "the record is a list instead of an object"),
        (b"7", "the record is a number instead of an object"),
        (b'{"x":' + b"[" * 100_000, "nested too deeply"),
        (b'{"x":' + b"9" * 5000 + b', "text": 1}', "broken JSON"),
    ],
)
def test_a_bad_line_is_located_and_the_rest_is_kept(tmp_path, read_all, line, reason):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines("one") + b"\n" + line + b"\n" + lines("two"))
    result = read_all(path)
    assert result.texts == [b"one", b"two"]
    assert [(reject.file, reject.where) for reject in result.rejects] == [(str(path), "line 3")]
    assert reason in result.rejects[0].reason


@pytest.mark.parametrize("other", [rb'"\ud800"', b"NaN", b"-Infinity"])
def test_a_fault_in_another_field_costs_nothing(tmp_path, read_all, other):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "kept", "other": ' + other + b"}\n")
    assert read_all(path) == ([b"kept"], [])


@pytest.mark.parametrize(
    "content",
    [
        b'{"text": "a"} {"text": "b"}\n\n',  # two values, two newlines
        b'{"text":\n"a"} {"text": "b"}\n',  # two values on two lines, but not one on each
        b'{"text": "a"}{"text": "b"}',
    ],
)
def test_values_that_are_not_one_per_line_are_never_taken_together(tmp_path, read_all, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    result = read_all(path)
    assert result.texts == []
    assert result.rejects


def test_bom_crlf_blank_lines_and_no_last_newline(tmp_path, read_all):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n\r\n  \n {"text": "b"} \r\n{"text": "c"}')
    assert read_all(path) == ([b"a", b"b", b"c"], [])


@pytest.mark.parametrize("field", ["text", "content", "article", "document", "raw_content"])
def test_the_text_field_is_found(tmp_path, read_all, field):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"broken\n" + lines("one", field=field))
    assert read_all(path).texts == [b"one"]


def test_all_spans_agree_on_the_field_of_the_first_record(tmp_path, read_all):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines("a" * 500, field="content") + b'{"text": "wrong", "content": "right"}\n' * 20)
    assert read_all(path, target=100).texts == [b"a" * 500] + [b"right"] * 20


@pytest.mark.parametrize("name", ["two words", "class", "körper", "a.b", ""])
def test_any_name_can_be_the_text_field(tmp_path, read_all, name):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines("one", "two", field=name))
    assert read_all(path, text_field=name).texts == [b"one", b"two"]


def test_a_nested_field_and_its_rejects(tmp_path, read_all):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"meta": {"text": "a"}}\n{"meta": 3}\n{"meta": {"x": 1}}\n')
    result = read_all(path, text_field="meta.text")
    assert result.texts == [b"a"]
    assert [reject.reason.split(";")[0] for reject in result.rejects] == [
        "field 'meta' is a number instead of an object",
        "no field 'meta.text' (fields found: x)",
    ]


def test_line_numbers_are_those_of_the_file_in_every_span(tmp_path, read_all):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b"bad\n" if number % 7 == 0 else lines("x" * 40) for number in range(1, 101)))
    expected = [f"line {number}" for number in range(7, 101, 7)]
    for target in (1 << 20, 1000, 64):
        assert [reject.where for reject in read_all(path, target=target).rejects] == expected


def test_an_empty_file_is_one_reject(tmp_path, suffix, compress, read_all):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(compress(suffix, b""))
    assert read_all(path) == ([], [(str(path), "byte 0", "empty file")])


def test_a_document_of_30_mb_goes_through(tmp_path, read_all):
    path = tmp_path / "a.jsonl"
    long = "0123456789abcdé" * 2_000_000
    path.write_bytes(lines("before", long, "after"))
    result = read_all(path, target=4 << 20)
    assert [len(text) for text in result.texts] == [6, len(long.encode()), 5]
    assert result.texts[1] == long.encode()


def test_a_cut_file_is_refused_or_kept_to_the_last_whole_line(tmp_path, packed, compress, read_all):
    path = tmp_path / f"a.jsonl{packed}"
    texts = [f"{number} {number * 2654435761 % (1 << 32)}" for number in range(100_000)]
    path.write_bytes(compress(packed, lines(*texts))[:-2000])
    with pytest.raises(DataRejected, match=r"is damaged at byte \d+: .*Fetch the file again, or pass --keep-damaged"):
        read_all(path)
    kept = read_all(path, keep_damaged=True)
    assert 0 < len(kept.texts) < len(texts)
    assert kept.texts == [text.encode() for text in texts[: len(kept.texts)]]
    assert [reject.file for reject in kept.rejects] == [str(path)]
    assert "cut short" in kept.rejects[0].reason


def test_complete_lines_gathers_a_long_line():
    assert list(complete_lines([b"ab", b"c", b"d\ne", b"f", b"\n", b"g"])) == [b"abcd\n", b"ef\n", b"g"]


LINE_PARTS = [b"\n", b"\r\n", b"  \n", "\ufeff".encode(), '{"text":"é🎉"}'.encode(), b'{"text":"b"}', b"x"]
CONTENTS = st.lists(st.sampled_from(LINE_PARTS))


@given(CONTENTS, st.lists(st.integers(0, 80), max_size=6))
@example([b'{"text":"b"}', b"\n", b'{"text":"b"}'], [1, 12, 13, 14])
def test_every_line_is_read_once_whatever_the_cuts(tmp_path_factory, contents, cuts):
    path = tmp_path_factory.mktemp("cuts") / "a.jsonl"
    path.write_bytes(b"".join(contents))
    size = path.stat().st_size
    edges = sorted({0, size, *(cut for cut in cuts if cut < size)})
    options = ReadOptions(text_field="text")

    def read(span):
        batches = list(read_span(span, options))
        return [t for b in batches for t in b.texts], [r for b in batches for r in b.rejects if r.where != "byte 0"]

    whole = read(Span(str(path), "jsonl", size))
    parts = [read(Span(str(path), "jsonl", b - a, None, a, b)) for a, b in pairwise(edges)]
    assert [text for part in parts for text in part[0]] == whole[0]
    assert [reject for part in parts for reject in part[1]] == whole[1]


def test_the_documents_do_not_depend_on_the_target(tmp_path, read_all):
    path = tmp_path / "a.jsonl"
    texts = [str(number) * (number % 50) for number in range(2000)]
    path.write_bytes(lines(*texts))
    for target in (600, 1000, 12_345, 1 << 20):
        assert read_all(path, target=target).texts == [text.encode() for text in texts]
    assert len(open_source(path).spans(1000)) > 50
