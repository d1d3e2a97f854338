from __future__ import annotations

import json

import pytest

from headrace.errors import DataRejected

RECORDS = [{"id": number, "text": f"document {number} äöü🎉 " + "x\n" * (number % 90)} for number in range(20_000)]
TEXTS = [record["text"].encode() for record in RECORDS]


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_of_objects(tmp_path, suffix, compress, read_all, indent):
    path = tmp_path / f"a.json{suffix}"
    path.write_bytes(compress(suffix, json.dumps(RECORDS[:3000], indent=indent, ensure_ascii=False).encode()))
    assert read_all(path) == (TEXTS[:3000], [])


def test_an_array_larger_than_many_blocks(tmp_path, read_all):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(RECORDS))
    assert read_all(path) == (TEXTS, [])


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b'["a", "b\\n"]', [b"a", b"b\n"]),
        (b'\xef\xbb\xbf[{"text": "a"}]', [b"a"]),
        (b" [ ] ", []),
        (b'{"text": "one"}', [b"one"]),
        (b'{\n "id": 1,\n "text": "one"\n}\n', [b"one"]),
        (b'{"text": "a"}{"text": "b"}  {"text": "c"}', [b"a", b"b", b"c"]),
        (b'{"text": "a"}\n{"text": "b"}\n', [b"a", b"b"]),
        (b'{\n"text": "a"}\n{"text":\n "b"}\n', [b"a", b"b"]),
        (b'[{"content": "a", "title": "t"}]', [b"a"]),
    ],
)
def test_shapes(tmp_path, read_all, content, texts):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert read_all(path) == (texts, [])


def test_bad_records_are_located(tmp_path, read_all):
    path = tmp_path / "a.json"
    path.write_bytes(
        b'[{"text": "a"}, {"text": null}, {"x": 1}, {"text": "\xff"}, {"text": "\\udc80"}, 5, {"text": "b"}]'
    )
    result = read_all(path)
    assert result.texts == [b"a", b"b"]
    assert [(reject.where, reject.reason.split(";")[0]) for reject in result.rejects] == [
        ("record 2", "field 'text' is null"),
        ("record 3", "no field 'text' (fields found: x)"),
        ("record 4", "invalid UTF-8"),
        ("record 5", "lone surrogate \\udc80 in field 'text', which no UTF-8 text can hold"),
        ("record 6", "the record is a number instead of an object"),
    ]


def test_a_broken_line_of_json_lines_costs_one_record(tmp_path, read_all):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"text": "a"}\n{broken\n{"text": "b"}\n')
    result = read_all(path)
    assert result.texts == [b"a", b"b"]
    assert result.rejects[0].where == "line 2"


@pytest.mark.parametrize(
    ("content", "where", "problem"),
    [
        (b'["\xc3\xa9", "b"', "byte 10", "the array is cut short"),
        (b'["a", "b', "byte 6", "the last value is cut short"),
        (b'["a" "b", "cccccccccccccccccccccccccccc"]', "byte 5", "a comma or ']' is missing"),
        (b'["a", {"b": nonsense}, "cccccccccccccccccccccccccc"]', "byte 12", "broken JSON"),
        (b'["a"] ["b"]', "byte 6", "more after the end of the array"),
    ],
)
def test_a_broken_array_is_damage(tmp_path, read_all, content, where, problem):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DataRejected) as error:
        read_all(path)
    assert f"{path} is damaged at {where}: " in str(error.value)
    assert problem in str(error.value)
    kept = read_all(path, keep_damaged=True)
    assert kept.texts[0] in (b"a", "é".encode())
    assert kept.rejects[0].where == where


def test_an_array_cut_in_a_compressed_file(tmp_path, compress, read_all):
    path = tmp_path / "a.json.zst"
    path.write_bytes(compress(".zst", json.dumps(RECORDS).encode())[:-100])
    kept = read_all(path, keep_damaged=True)
    assert 0 < len(kept.texts) < len(TEXTS)
    assert kept.texts == TEXTS[: len(kept.texts)]


def test_an_empty_file_is_one_reject(tmp_path, read_all):
    path = tmp_path / "a.json"
    path.write_bytes(b"")
    assert read_all(path) == ([], [(str(path), "byte 0", "empty file")])


def test_a_long_value_is_read(tmp_path, read_all):
    path = tmp_path / "a.json"
    long = "abc\\def" * 1_000_000
    path.write_text(json.dumps([{"text": "a"}, {"text": long}, {"text": "b"}]))
    assert read_all(path).texts == [b"a", long.encode(), b"b"]
