"""Best-fit plans: every token once, no chunk too full, and exactly the chunks that best-fit decreasing opens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import StoreError, UsageError
from headrace.packing import best_fit, load_plan, save_plan

lengths_lists = st.lists(st.integers(0, 150), max_size=120)


def one_by_one(lengths: list[int], size: int) -> int:
    """Best-fit decreasing as the textbook says it: how many chunks it opens."""
    pieces = [min(size, length - start) for length in lengths for start in range(0, length, size)]
    rooms: list[int] = []
    for piece in sorted(pieces, reverse=True):
        fitting = [i for i, room in enumerate(rooms) if room >= piece]
        if fitting:
            rooms[min(fitting, key=lambda i: rooms[i])] -= piece
        else:
            rooms.append(size - piece)
    return len(rooms)


@given(lengths_lists, st.integers(1, 64))
def test_every_token_once_and_no_chunk_too_full(lengths: list[int], size: int) -> None:
    plan = best_fit(np.array(lengths, np.int32), size)
    covered = np.zeros(sum(lengths), int)
    for start, length in plan.pieces:
        covered[start : start + length] += 1
    assert (covered == 1).all()
    assert all(0 < plan.chunk(i)[:, 1].sum() <= size for i in range(plan.num_chunks))


@given(lengths_lists, st.integers(1, 64))
def test_as_many_chunks_as_the_textbook(lengths: list[int], size: int) -> None:
    assert best_fit(np.array(lengths, np.int32), size).num_chunks == one_by_one(lengths, size)


def test_a_document_that_fits_is_never_cut() -> None:
    lengths = np.array([5, 3, 8, 2, 6, 20, 1], np.int32)
    plan = best_fit(lengths, 8)
    starts = np.cumsum(lengths) - lengths
    pieces = {(int(start), int(length)) for start, length in plan.pieces}
    for start, length in zip(starts, lengths, strict=True):
        if length <= 8:
            assert (int(start), int(length)) in pieces
    assert {(24, 8), (32, 8), (40, 4)} <= pieces  # the document of 20


def test_fill() -> None:
    assert best_fit(np.array([4, 4, 4, 4], np.int32), 8).fill == 1.0
    assert best_fit(np.array([5, 5], np.int32), 8).fill == pytest.approx(10 / 16)


def test_saved_plan_is_mapped_and_equal(tmp_path: Path) -> None:
    plan = best_fit(np.array([5, 3, 8, 2], np.int32), 8)
    save_plan(tmp_path, plan)
    again = load_plan(tmp_path, 8)
    assert isinstance(again.pieces, np.memmap)
    assert again.pieces.tolist() == plan.pieces.tolist()
    assert again.offsets.tolist() == plan.offsets.tolist()


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no best-fit plan for chunk size 16"):
        load_plan(tmp_path, 16)


def test_chunk_size_zero() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        best_fit(np.array([1], np.int32), 0)
