"""The data mix of a run out of its events."""

from __future__ import annotations

from typing import Any

import pytest

from conftest_events import run_event, step_event
from headrace.dashboard.mix import MixHistory, mix_of
from headrace.telemetry import encode_json


def sources(web: int, code: int, target: float = 0.75) -> dict[str, Any]:
    told = {"data/web": (web, target), "data/code": (code, 1 - target)}
    return {
        name: {"samples": samples, "tokens": samples * 16, "epochs": samples / 100, "target": weight}
        for name, (samples, weight) in told.items()
    }


def step(number: int, web: int, code: int, **more: Any) -> dict[str, Any]:
    return step_event(number, sources=sources(web, code, **more))


def test_shares_against_targets() -> None:
    found = mix_of([run_event(), step(10, 30, 10), step(20, 65, 15), step(30, 65, 55)])
    assert found is not None
    assert found["steps"] == [10, 20, 30]
    web, code = found["sources"]
    assert web == {
        "name": "data/web",
        "target": 0.75,
        "actual": 65 / 120,
        "samples": 65,
        "tokens": 65 * 16,
        "epochs": 0.65,
        "share_over_steps": [0.75, 35 / 40, 0.0],
    }
    assert code["share_over_steps"] == [0.25, 5 / 40, 1.0]


def test_a_run_of_one_source_has_no_mix() -> None:
    assert mix_of([]) is None
    assert mix_of([run_event(), step_event(10), step_event(20, sources=None)]) is None


def test_what_a_run_went_back_over_does_not_count() -> None:
    again = [run_event(10), step(20, 70, 10)]
    found = mix_of([run_event(), step(10, 30, 10), step(20, 99, 1), step(30, 199, 1), *again])
    assert found == mix_of([run_event(), step(10, 30, 10), step(20, 70, 10)])
    back = mix_of([run_event(), step(10, 30, 10), step(20, 99, 1), run_event(10)])
    assert back == mix_of([run_event(), step(10, 30, 10)])


def test_a_source_that_joins_later_and_one_that_leaves() -> None:
    first = {"a": {"samples": 10, "tokens": 160, "epochs": 0.1, "target": 1.0}}
    joined = {**first, "b": {"samples": 10, "tokens": 160, "epochs": 0.1, "target": 3.0}}
    found = mix_of([step_event(10, sources=first), step_event(20, sources=joined)])
    assert found is not None
    assert [(row["name"], row["target"]) for row in found["sources"]] == [("a", 0.25), ("b", 0.75)]
    assert [row["share_over_steps"] for row in found["sources"]] == [[1.0, 0.0], [0.0, 1.0]]


def test_it_stays_small_and_loses_no_sample() -> None:
    history = MixHistory(most=16)
    for number in range(1, 2001):
        history.add(step(number, number * 3, number))
    found = history.as_dict()
    assert found is not None
    assert len(found["steps"]) <= 16
    assert found["steps"][-1] == 2000
    assert found["sources"][0]["actual"] == 0.75
    assert all(share == 0.75 for share in found["sources"][0]["share_over_steps"])


@pytest.mark.parametrize(
    "told",
    [
        [],
        "x",
        {},
        {"a": None},
        {"a": {}},
        {"a": {"samples": None, "target": "x"}},
        {"a": {"samples": float("nan"), "tokens": float("inf"), "target": 0}},
    ],
)
def test_events_of_somebody_else(told: Any) -> None:
    """They are left out, or shown as far as they are numbers; they break nothing."""
    found = mix_of([step_event(10, sources=told), {"kind": "step", "step": "x", "sources": sources(1, 1)}])
    assert found is None or (found["steps"] == [10] and len(found["sources"]) == len(told))
    assert b"NaN" not in encode_json(found)
