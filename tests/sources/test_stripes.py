"""A compressed file shared by workers: every line once, in order, with its number, whoever reads which range."""

from __future__ import annotations

import gzip
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import DataRejected
from headrace.sources import ReadOptions, Span, open_source, read_spans, stripes
from headrace.sources.stripes import StripeReader


def compressed(path: Path, data: bytes, seed: int = 0) -> Path:
    """In several frames or members, as parallel compressors write."""
    cuts = sorted(random.Random(seed).sample(range(len(data) + 1), min(3, len(data))))
    parts = [data[a:b] for a, b in pairwise([0, *cuts, len(data)])]
    pack = gzip.compress if path.suffix == ".gz" else zstandard.ZstdCompressor().compress
    path.write_bytes(b"".join(map(pack, parts)))
    return path


@pytest.mark.parametrize("suffix", ["zst", "gz"])
@given(data=st.binary(max_size=3000), cuts=st.lists(st.integers(0, 4000), max_size=5), newlines=st.integers(0, 60))
def test_every_line_once(tmp_path_factory, suffix: str, data: bytes, cuts: list[int], newlines: int) -> None:
    data = bytes(10 if byte < newlines else byte for byte in data)
    path = compressed(tmp_path_factory.mktemp("stripes") / f"a.{suffix}", data)
    size = path.stat().st_size
    marks = [0, *sorted(cut for cut in cuts if 0 < cut < size), size]
    fresh, kept = b"", b""
    reader = StripeReader(str(path), suffix)
    for start, stop in pairwise(marks):
        fresh += b"".join(StripeReader(str(path), suffix).blocks(start, stop))
        kept += b"".join(reader.blocks(start, stop))
    assert fresh == kept == data


def records(count: int) -> bytes:
    """Numbers that do not compress much, so that a range of the file is a range of the text."""
    rng = random.Random(1)
    texts = (" ".join(str(rng.random()) for _ in range(rng.randint(1, 20))) for _ in range(count))
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def ranges(path: Path, parts: int) -> list[Span]:
    size = path.stat().st_size
    cuts = [size * i // parts for i in range(parts + 1)]
    return [Span(str(path), "jsonl", b - a, path.suffix[1:], a, b) for a, b in pairwise(cuts)]


def read(spans: list[Span], **options) -> tuple[list[bytes], list[str]]:
    batches = list(read_spans(spans, ReadOptions(**options)))
    assert sum(batch.input_bytes for batch in batches) == sum(span.size for span in spans)
    return [t for b in batches for t in b.texts], [r.where for b in batches for r in b.rejects]


@pytest.mark.parametrize("suffix", ["zst", "gz"])
@pytest.mark.parametrize("order", ["rising", "falling", "every second"])
def test_the_documents_are_the_same_in_any_order_of_reading(tmp_path: Path, suffix: str, order: str) -> None:
    data = records(4000)
    path = compressed(tmp_path / f"a.jsonl.{suffix}", data)
    spans = ranges(path, 7)
    todo = {"rising": range(7), "falling": range(6, -1, -1), "every second": [0, 2, 4, 6, 1, 3, 5]}[order]
    found = {number: read([spans[number]])[0] for number in todo}
    expected = [json.loads(line)["text"].encode() for line in data.splitlines()]
    assert [text for number in range(7) for text in found[number]] == expected
    assert sum(bool(texts) for texts in found.values()) > 3


def test_rejects_have_the_line_of_the_whole_file(tmp_path: Path) -> None:
    lines = records(3000).splitlines()
    for number in (5, 1500, 2999):
        lines[number] = b"{broken"
    path = compressed(tmp_path / "a.jsonl.zst", b"\n".join(lines))
    where = [place for span in ranges(path, 6) for place in read([span])[1]]
    assert where == ["line 6", "line 1501", "line 3000"]


def test_a_worker_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compressed(tmp_path / "a.jsonl.zst", records(3000))
    opened = []
    real = stripes.StripeReader
    monkeypatch.setattr(stripes, "StripeReader", lambda *key: opened.append(key) or real(*key))
    spans = ranges(path, 6)
    for number in (0, 2, 3, 5):
        read([spans[number]])
    assert len(opened) == 1
    read([spans[4]])
    assert len(opened) == 2


def test_a_cut_file_is_reported_once_by_the_range_that_holds_the_cut(tmp_path: Path) -> None:
    path = compressed(tmp_path / "a.jsonl.zst", records(4000))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    spans = ranges(path, 5)
    errors = []
    for span in spans:
        try:
            read([span])
        except DataRejected as error:
            errors.append(str(error))
    assert len(errors) == 1
    assert "a.jsonl.zst" in errors[0]
    kept = [read([span], keep_damaged=True) for span in spans]
    assert sum(len(rejects) for _, rejects in kept) == 1
    assert sum(len(texts) for texts, _ in kept) > 1000


def test_only_large_files_of_small_sources_are_shared(tmp_path: Path) -> None:
    for number in range(17):
        compressed(tmp_path / f"{number:02d}.jsonl.zst", records(300))
    size = (tmp_path / "00.jsonl.zst").stat().st_size
    few = open_source(sorted(tmp_path.glob("*.zst"))[:3])
    assert len(few.spans(size // 4)) > 6
    assert len(few.spans(size * 10)) == 3
    assert len(open_source(tmp_path).spans(size // 4)) == 17
