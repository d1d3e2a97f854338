from __future__ import annotations

import pytest

from headrace.sources.suffixes import natural_order, recognise


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", ("jsonl", None)),
        ("A.JSONL.ZST", ("jsonl", "zst")),
        ("a.ndjson.gz", ("jsonl", "gz")),
        ("a.b.parquet", ("parquet", None)),
        ("x/a.feather", ("arrow", None)),
        ("a.txt.xz", ("text", "xz")),
        ("a.gz", None),
        ("a.tar.gz", None),
        ("jsonl", None),
        ("x/.json", None),
    ],
)
def test_recognise(name, kind):
    assert recognise(name) == kind


def test_natural_order():
    names = ["a10", "a2", "a02", "b1", "a", "10", "9", "a2b", "²"]
    backwards = names[::-1]
    assert sorted(names, key=natural_order) == sorted(backwards, key=natural_order)
    assert sorted(["p-10", "p-9", "p-1"], key=natural_order) == ["p-1", "p-9", "p-10"]
