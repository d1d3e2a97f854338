"""Columns that stay short however long a run is."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.training.columns import Columns


def filled(count: int, most: int) -> Columns:
    table = Columns(["steps", "loss", "tokens"], most, last=("steps", "tokens"))
    for step in range(1, count + 1):
        table.add({"steps": step, "loss": float(step), "tokens": 10 * step})
    return table


@given(count=st.integers(1, 300), most=st.integers(2, 40))
def test_never_longer_than_allowed_and_never_loses_the_newest(count: int, most: int) -> None:
    table = filled(count, most)
    assert len(table) <= most
    assert table["steps"][-1] == count
    assert table["tokens"] == [10 * step for step in table["steps"]]
    assert table["steps"] == sorted(set(table["steps"]))


def test_neighbours_become_their_mean() -> None:
    table = filled(5, 4)
    assert table.as_dict() == {"steps": [2, 4, 5], "loss": [1.5, 3.5, 5.0], "tokens": [20, 40, 50]}


@pytest.mark.parametrize("count", [17, 32, 33, 100, 1000, 4097])
def test_all_points_but_the_newest_stand_for_equally_many(count: int) -> None:
    steps = filled(count, 16)["steps"]
    assert 8 <= len(steps) <= 16
    assert len({later - step for step, later in itertools.pairwise([0, *steps[:-1]])}) == 1


def test_a_point_is_the_mean_of_what_it_stands_for() -> None:
    found = filled(63, 8)
    for first, last, loss in zip([0, *found["steps"]], found["steps"], found["loss"], strict=False):
        assert loss == pytest.approx((first + 1 + last) / 2)


def test_going_back_after_merging() -> None:
    found = filled(64, 8)
    found.drop_after(40)
    found.add({"steps": 41, "loss": 9.0, "tokens": 410})
    assert found["steps"] == [8, 16, 24, 32, 40, 41]
    assert found["loss"][-1] == 9.0


def test_a_mean_leaves_out_what_is_missing() -> None:
    table = Columns(["steps", "loss"], 2, last=("steps",))
    for step, loss in ((1, None), (2, 4.0), (3, None)):
        table.add({"steps": step, "loss": loss})
    assert table.as_dict() == {"steps": [2, 3], "loss": [4.0, None]}


def test_a_column_that_comes_later_is_filled_up() -> None:
    table = Columns(["steps"], 10)
    table.add({"steps": 1})
    table.add({"steps": 2, "gpu": 0.5})
    table.add({"steps": 3})
    assert table.as_dict() == {"steps": [1, 2, 3], "gpu": [None, 0.5, None]}


def test_a_step_is_there_once() -> None:
    table = filled(5, 100)
    table.add({"steps": 4, "loss": 9.0, "tokens": 40})
    assert table["steps"] == [1, 2, 3, 4]
    assert table["loss"][-1] == 9.0


def test_drop_after() -> None:
    table = filled(5, 100)
    table.drop_after(3)
    assert table["loss"] == [1.0, 2.0, 3.0]
    table.drop_after(0)
    assert len(table) == 0
