from __future__ import annotations

import pytest

from headrace.demo.pace import FOR_STEPS, LEAST_STEPS, steps_within
from headrace.demo.plan import SHARES, DemoConfig
from headrace.errors import UsageError


def test_steps_fit_into_the_time() -> None:
    assert steps_within(36, 0.1) == int(36 * FOR_STEPS / 0.1)
    assert steps_within(0.001, 0.1) == LEAST_STEPS


def test_time_is_divided_among_all_parts() -> None:
    config = DemoConfig(seconds=100)
    assert sum(config.part(name) for name in SHARES) == pytest.approx(100)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 1e9])
def test_impossible_times_are_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="--seconds"):
        DemoConfig(seconds=seconds)
