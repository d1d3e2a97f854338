"""Control tokens, the val split, and the cut of --max-chunks, on arrays small enough to read."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.pipeline.assemble import documents_within, join_documents, val_documents

ROWS = [np.array(row, np.uint32) for row in ([1, 2], [], [3, 4, 5])]


@pytest.mark.parametrize(
    ("eos", "bos", "tokens", "lengths"),
    [
        (None, None, [1, 2, 3, 4, 5], [2, 0, 3]),
        (9, None, [1, 2, 9, 9, 3, 4, 5, 9], [3, 1, 4]),
        (None, 8, [8, 1, 2, 8, 8, 3, 4, 5], [3, 1, 4]),
        (9, 8, [8, 1, 2, 9, 8, 9, 8, 3, 4, 5, 9], [4, 2, 5]),
    ],
)
def test_control_tokens(eos: int | None, bos: int | None, tokens: list[int], lengths: list[int]) -> None:
    got, got_lengths = join_documents(ROWS, np.dtype("uint16"), eos, bos)
    assert (got.tolist(), got_lengths.tolist(), got.dtype) == (tokens, lengths, np.dtype("uint16"))


def test_no_documents() -> None:
    tokens, lengths = join_documents([], np.dtype("int32"), 9, 8)
    assert (len(tokens), len(lengths)) == (0, 0)


def test_val_split_depends_on_the_text_alone() -> None:
    texts = [f"text {i}".encode() for i in range(5000)]
    chosen = val_documents(texts, 0.1, 0)
    assert 400 < chosen.sum() < 600
    assert val_documents(texts[::-1], 0.1, 0).tolist() == chosen.tolist()[::-1]
    assert val_documents(texts, 0.1, 1).tolist() != chosen.tolist()
    assert not val_documents(texts, 0.0, 0).any()


def test_a_larger_val_fraction_keeps_those_chosen_before() -> None:
    texts = [f"text {i}".encode() for i in range(2000)]
    small, large = val_documents(texts, 0.05, 0), val_documents(texts, 0.2, 0)
    assert (large | small).tolist() == large.tolist()


def test_documents_within() -> None:
    lengths, none = np.array([3, 4, 5], np.int32), np.zeros(3, bool)
    assert [documents_within(lengths, none, wanted) for wanted in (1, 3, 4, 7, 8, 12, 99)] == [1, 1, 2, 2, 3, 3, 3]
    assert documents_within(lengths, np.array([True, False, False]), 4) == 2  # val documents do not count
