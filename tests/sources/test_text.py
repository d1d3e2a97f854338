from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.sources import ReadOptions, Span, open_source, read_span, text
from headrace.sources.splitting import can_split


@pytest.mark.parametrize("ending", [".txt", ".md", ".py", ".rst"])
def test_a_file_is_a_document(tmp_path, suffix, compress, read_all, ending):
    path = tmp_path / f"a{ending}{suffix}"
    content = "# über\n\nzwei 🎉\0\r\n".encode()
    path.write_bytes(compress(suffix, b"\xef\xbb\xbf" + content))
    assert read_all(path) == ([content], [])


def test_an_empty_file_is_one_reject(tmp_path, suffix, compress, read_all):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(suffix, b""))
    assert read_all(path) == ([], [(str(path), "byte 0", "empty file")])


@pytest.mark.parametrize("place", [0, 5, (1 << 20) - 1, 1 << 20, (1 << 20) + 7])
def test_invalid_utf8_is_located(tmp_path, read_all, place):
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * place + b"\xe2\x82" + b"y" * 10)
    assert read_all(path) == ([], [(str(path), f"byte {place}", "invalid UTF-8")])


def test_python_source_in_the_encoding_its_first_lines_name(tmp_path, read_all):
    source = "#!/usr/bin/python\n# -*- coding: latin-1 -*-\nname = 'ü'\n"
    (tmp_path / "a.py").write_bytes(source.encode("latin-1"))
    (tmp_path / "b.txt").write_bytes(source.encode("latin-1"))
    (tmp_path / "c.py").write_bytes(b"# coding: no-such-thing\n")
    result = read_all(tmp_path)
    assert result.texts == [source.encode()]
    assert [(reject.where, reject.reason[:20]) for reject in result.rejects] == [
        ("byte 52", "invalid UTF-8"),
        ("byte 0", "not in the encoding "),
    ]


def test_separator(tmp_path, suffix, compress, read_all):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(suffix, b"\xef\xbb\xbfone\n1\n<|end|>\r\n\ntwo<|end|><|end|>\n<|end|>three \n"))
    assert read_all(path, separator="<|end|>") == ([b"one\n1", b"two", b"three "], [])


def test_invalid_utf8_between_separators_costs_one_document(tmp_path, read_all):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n--8<--\n\nt\xffwo\n--8<--\nthree")
    assert read_all(path, separator="--8<--") == ([b"one", b"three"], [(str(path), "byte 13", "invalid UTF-8")])


@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"<>", b"<", b">", "é".encode(), b"a", b"\n\n"]), max_size=30),
    st.lists(st.integers(1, 40), max_size=6),
    st.sampled_from(["<>", "\n\n", "\n", "\n\n\n"]),
)
def test_every_document_is_read_once_whatever_the_cuts(tmp_path_factory, contents, cuts, separator):
    path = tmp_path_factory.mktemp("cuts") / "a.txt"
    path.write_bytes(b"".join(contents))
    size = path.stat().st_size
    edges = sorted({0, size, *(cut for cut in cuts if cut < size)})
    options = ReadOptions(separator=separator)

    def read(span):
        return [text for batch in read_span(span, options) for text in batch.texts]

    parts = [read(Span(str(path), "text", b - a, None, a, b)) for a, b in pairwise(edges)]
    assert [text for part in parts for text in part] == read(Span(str(path), "text", size))


def test_a_separator_that_overlaps_itself_is_not_split_on(tmp_path, read_all):
    assert [can_split(mark) for mark in ("---", "abab", "\n\n", "<|end|>", None)] == [False, False, True, True, False]
    path = tmp_path / "a.txt"
    path.write_bytes(b"a----b---c" * 50)
    assert len(open_source(path, separator="---").spans(10)) == 1
    assert read_all(path, target=10, separator="---").texts[:3] == [b"a", b"-b", b"ca"]


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(text, "LARGE_BYTES", 4000)
    monkeypatch.setattr(text, "PART_BYTES", 1000)
    monkeypatch.setattr(text, "WINDOW_BYTES", 300)


@pytest.mark.parametrize(
    "content",
    [
        b"".join(b"paragraph %d\nmore\n\n" % number for number in range(700)),
        b"".join(b"line %d\r\n" % number for number in range(1200)),
        "é".encode() * 5001,
        b"x" * 5000 + b"\n\n" * 1000,
        b"x" * 8000,
    ],
)
def test_a_large_file_is_cut_alike_by_any_target_and_any_compression(
    tmp_path, small_limits, compress, read_all, content
):
    path, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    path.write_bytes(content)
    packed.write_bytes(compress(".gz", content))
    whole = read_all(path, target=1 << 30)
    assert b"".join(whole.texts) == content
    assert whole.rejects == []
    assert len(whole.texts) >= 5
    assert max(map(len, whole.texts)) <= 1300
    for target in (1, 1000, 2500):
        assert read_all(path, target=target).texts == whole.texts
    assert read_all(packed).texts == whole.texts


def test_a_large_file_is_cut_at_blank_lines(tmp_path, small_limits, read_all):
    path = tmp_path / "a.txt"
    path.write_bytes(b"".join(b"paragraph %d\nmore\n\n" % number for number in range(700)))
    assert all(part.startswith(b"paragraph ") and part.endswith(b"\n\n") for part in read_all(path).texts)
