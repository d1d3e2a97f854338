from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.sources.columns import texts_of


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())]
)
def test_every_kind_of_text_column(kind):
    values = ["one", "zwei ä", "", "one", "🎉"]
    column = pa.array(values, pa.binary() if kind in (pa.binary(), pa.large_binary()) else pa.string()).cast(kind)
    assert texts_of(column, "f", 0) == ([value.encode() for value in values], [])
    assert texts_of(column.slice(1, 2), "f", 0)[0] == ["zwei ä".encode(), b""]


def test_nulls_and_invalid_utf8_are_rejected_by_row():
    column = pa.array([b"a", None, b"b\xff", b"\xed\xa0\x80", b"c"], pa.binary())
    texts, rejects = texts_of(column, "f", 100)
    assert texts == [b"a", b"c"]
    assert [reject[:3] for reject in rejects] == [
        ("f", "row 102", "the text is null"),
        ("f", "row 103", "invalid UTF-8 at byte 1 of the text"),
        ("f", "row 104", "invalid UTF-8 at byte 0 of the text"),
    ]


def test_invalid_utf8_that_claims_to_be_a_string_is_found():
    column = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    assert [reject.where for reject in texts_of(column, "f", 0)[1]] == ["row 2"]
