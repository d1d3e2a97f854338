"""The learning rate: bounds, joints and ends of every schedule."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import UsageError
from headrace.training.schedule import COOLDOWNS, KINDS, check_schedule, decay_steps, learning_rate, warmup_steps

BASE: dict[str, Any] = {"kind": "cosine", "peak": 1e-3, "warmup": 10, "total": 100}


@st.composite
def schedules(draw: st.DrawFn) -> dict[str, Any]:
    total = draw(st.integers(4, 10_000))
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "peak": draw(st.floats(1e-6, 1.0)),
        "warmup": draw(st.one_of(st.integers(0, total // 2), st.floats(0, 0.5))),
        "total": total,
        "min_ratio": draw(st.floats(0, 1)),
        "decay_fraction": draw(st.floats(0.01, 0.4)),
        "cooldown": draw(st.sampled_from(COOLDOWNS)),
    }


@given(schedules(), st.data())
def test_every_rate_is_above_0_and_at_most_the_peak(schedule: dict[str, Any], data: st.DataObject) -> None:
    step = data.draw(st.integers(0, schedule["total"] - 1))
    assert 0 < learning_rate(step, **schedule) <= schedule["peak"] * (1 + 1e-12)


@given(schedules())
def test_peak_comes_after_the_warmup_and_the_floor_after_the_last_step(schedule: dict[str, Any]) -> None:
    rise = warmup_steps(schedule["warmup"], schedule["total"])
    floor = schedule["peak"] * (1 if schedule["kind"] == "constant" else schedule["min_ratio"])
    assert learning_rate(rise, **schedule) == schedule["peak"]
    assert learning_rate(schedule["total"], **schedule) == floor
    assert learning_rate(schedule["total"] + 1000, **schedule) == floor


@given(schedules())
def test_rises_then_never_rises_again(schedule: dict[str, Any]) -> None:
    rise, total = warmup_steps(schedule["warmup"], schedule["total"]), schedule["total"]
    steps = sorted({*range(0, total + 1, max(1, total // 200)), rise, total})
    rates = {step: learning_rate(step, **schedule) for step in steps}
    for a, b in itertools.pairwise(steps):
        assert rates[a] < rates[b] if b <= rise else rates[b] <= rates[a] * (1 + 1e-12)


@given(schedules())
def test_no_jump_at_the_joints(schedule: dict[str, Any]) -> None:
    """The warm-up ends one stride below the peak, and the decay starts from the peak itself."""
    rise, total, peak = warmup_steps(schedule["warmup"], schedule["total"]), schedule["total"], schedule["peak"]
    if rise:
        assert peak - learning_rate(rise - 1, **schedule) == pytest.approx(peak / (rise + 1))
    if schedule["kind"] == "wsd":
        start = total - decay_steps(schedule["decay_fraction"], total)
        assert learning_rate(start, **schedule) == peak


def test_warmup_strides_are_equal_and_the_first_step_learns() -> None:
    rates = [learning_rate(step, kind="constant", peak=1.0, warmup=4, total=10) for step in range(6)]
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])


@pytest.mark.parametrize(
    ("kind", "cooldown", "middle"),
    [("cosine", "sqrt", 0.55), ("linear", "sqrt", 0.55), ("wsd", "linear", 0.55), ("wsd", "sqrt", 0.1 + 0.9 * 0.5)],
)
def test_middle_of_the_decay(kind: str, cooldown: str, middle: float) -> None:
    """Half-way for cosine and linear; the square root is half-way down after a quarter."""
    start = 80 if kind == "wsd" else 20
    step = start + (100 - start) // (4 if (kind, cooldown) == ("wsd", "sqrt") else 2)
    rate = learning_rate(step, kind=kind, peak=1.0, warmup=20, total=100, min_ratio=0.1, cooldown=cooldown)
    assert rate == pytest.approx(middle)


def test_fraction_of_the_run_is_the_same_warmup_as_its_steps() -> None:
    in_steps = [learning_rate(step, **BASE) for step in range(100)]
    assert [learning_rate(step, **{**BASE, "warmup": 0.1}) for step in range(100)] == in_steps


def test_longer_wsd_run_repeats_the_start_of_a_shorter_one() -> None:
    """So a run can be made longer after the fact, from any checkpoint before its cool-down."""
    short = [learning_rate(s, kind="wsd", peak=1.0, warmup=10, total=100) for s in range(80)]
    assert [learning_rate(s, kind="wsd", peak=1.0, warmup=10, total=900) for s in range(80)] == short


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "cos"}, "schedule 'cos' is not one of cosine, wsd, linear, constant"),
        ({"cooldown": "cube"}, "cool-down 'cube' is not one of sqrt, linear"),
        ({"peak": 0.0}, "learning rate 0.0"),
        ({"peak": float("nan")}, "learning rate nan"),
        ({"min_ratio": 1.5}, "minimum ratio 1.5"),
        ({"decay_fraction": 0.0}, "decay fraction 0.0"),
        ({"total": 0, "warmup": 0}, "a run of 0 steps"),
        ({"warmup": -1}, "warm-up -1 is neither"),
        ({"warmup": 2.5}, "warm-up 2.5 is neither"),
        ({"warmup": 100}, "100 steps of warm-up do not fit into a run of 100"),
        ({"kind": "wsd", "warmup": 90}, "90 steps of warm-up and 20 of cool-down do not fit into a run of 100"),
    ],
)
def test_schedule_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_schedule(**{**BASE, **change})
    with pytest.raises(UsageError, match=message):
        learning_rate(0, **{**BASE, **change})
