"""Scales hold what they show, ticks are round, thinning loses no spike and closes no gap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.pages.axes import Scale, evenly, focused, nearest, pieces, plain, scale_of, thinned, ticks
from headrace.pages.text import percent

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.booleans(), st.booleans())
def test_a_scale_holds_its_values(values: list[float], log: bool, zero: bool) -> None:
    scale = scale_of(values, log=log, zero=zero)
    assert scale.low <= min(values)
    assert max(values) <= scale.high
    assert all(-1e-9 <= scale.share(value) <= 1 + 1e-9 for value in values)


@given(NUMBERS, NUMBERS)
def test_ticks_are_few_and_inside(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high - low < 1e-6 * max(1.0, abs(high)):
        return
    found = ticks(Scale(low, high))
    spare = 1e-6 * (high - low)
    assert 1 <= len(found) <= 7
    assert all(low - spare <= value <= high + spare for value in found)
    assert found == sorted(set(found))


def test_ticks_are_round() -> None:
    assert ticks(Scale(0, 600)) == [0, 200, 400, 600]
    assert ticks(Scale(3.9, 7.2)) == [4, 5, 6, 7]
    assert ticks(Scale(1, 3), whole=True) == [1, 2, 3]


def test_ticks_of_a_log_scale_are_powers() -> None:
    assert ticks(Scale(0.5, 2000, True)) == [1, 10, 100, 1000]
    assert ticks(Scale(0.9, 30, True)) == [1, 2, 5, 10, 20]
    assert len(ticks(Scale(1e-30, 1e30, True))) <= 7
    assert ticks(Scale(3.1, 3.9, True)) == [3.2, 3.4, 3.6, 3.8]  # no power in it: as on a linear one


def test_log_needs_positive_values() -> None:
    assert scale_of([0.0, 5.0], log=True).log is False


def test_a_focused_scale_leaves_the_start_out() -> None:
    losses: list[float | None] = [1000.0, *([5.0] * 50), *([4.0] * 50), None]
    assert focused(losses, [4.5]).high < 6
    spike: list[float | None] = [*([5.0] * 300), 900.0, *([4.0] * 300)]
    assert focused(spike).high < 6


def test_thinning_keeps_spikes_gaps_and_ends() -> None:
    xs = list(range(100_000))
    ys: list[float | None] = [1.0] * 100_000
    ys[54_321], ys[12_345] = 99.0, -99.0
    ys[70_000:80_000] = [None] * 10_000
    kept_xs, kept = thinned(xs, ys, 900)
    assert len(kept) <= 1000
    assert {99.0, -99.0, None} <= set(kept)
    assert kept_xs == sorted(kept_xs)
    assert (kept_xs[0], kept_xs[-1]) == (0, 99_999)
    assert len(pieces(kept_xs, kept)) == 2


def test_nothing_is_thinned_that_is_short() -> None:
    assert thinned([1, 2], [None, 4.0]) == ([1, 2], [None, 4.0])


def test_pieces_are_cut_at_gaps_and_at_what_is_no_number() -> None:
    found = pieces([1, 2, 3, 4, 5], [1.0, None, 3.0, math.nan, 5.0])
    assert found == [[(1, 1.0)], [(3, 3.0)], [(5, 5.0)]]


def test_nearest_stays_within_reach() -> None:
    assert nearest([10, 20, 30], [1.0, None, 3.0], 19, 15) == 1.0
    assert nearest([10, 20, 30], [1.0, None, 3.0], 19, 2) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.0003, "0.0003"),
        (0.00002, "2.0e-05"),
        (1200, "1,200"),
        (20_000, "20 k"),
        (1.5e6, "1.5 M"),
        (-3.5, "-3.5"),
    ],
)
def test_plain(value: float, shown: str) -> None:
    assert plain(value) == shown


def test_one_axis_has_one_kind_of_number() -> None:
    assert evenly([0.11, 0.115, 0.12], plain) == ["0.110", "0.115", "0.120"]
    assert evenly([0, 0.05, 0.1], percent) == ["0%", "5%", "10%"]
    assert evenly([0, 0.002], percent) == ["0%", "0.2%"]
    assert evenly([5_000, 10_000], plain) == ["5,000", "10 k"]
