from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.sources.span import ReadOptions, SourceFile, Span
from headrace.sources.splitting import group, split


@given(st.integers(0, 10**13), st.integers(10**9, 10**12))
def test_byte_ranges_cover_the_file(size, target):
    spans = split(SourceFile("/a.jsonl", size, "jsonl"), ReadOptions(), target)
    assert sum(span.size for span in spans) == size
    assert [span.start for span in spans[1:]] == [span.stop for span in spans[:-1]]
    assert all(span.size <= 1.5 * target for span in spans)


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(0, 10_000), st.integers(1, 3000))
def test_groups_cover_the_file(sizes, file_size, target):
    cuts, shares = group(sizes, file_size, target)
    assert cuts[-1] == len(sizes)
    assert cuts == sorted(set(cuts))
    assert shares == sorted(shares)
    assert shares[-1] == (file_size if sizes else 0)


def test_compressed_json_and_small_files_are_whole():
    for format, compression in [("jsonl", "zst"), ("json", None), ("text", None), ("text", "gz")]:
        spans = split(SourceFile("/a", 10**8, format, compression), ReadOptions(), 10**6)
        assert spans == [Span("/a", format, 10**8, compression)]


def test_a_large_text_is_split_at_multiples_of_64_mib():
    spans = split(SourceFile("/a.txt", 300 << 20, "text"), ReadOptions(), 130 << 20)
    assert [(span.start >> 20, (span.stop or 0) >> 20) for span in spans] == [(0, 128), (128, 256), (256, 300)]


def test_hub_parquet_is_not_fetched_to_be_planned():
    file = SourceFile("hf://datasets/o/n@c/a.parquet", 10**10, "parquet")
    assert len(split(file, ReadOptions(), 10**6)) == 1
