"""The curves of a run out of its events."""

from __future__ import annotations

import math

import pytest

from conftest_events import a_run, eval_event, run_event, sample_event, step_event
from headrace.training.history import History, span_shares


def test_columns_have_one_entry_per_interval() -> None:
    told = History.from_events(a_run(1000)).as_dict()
    assert told["steps"] == list(range(10, 1001, 10))
    assert told["val_steps"] == list(range(100, 1001, 100))
    for name in ("train_loss", "learning_rate", "grad_norm", "tokens_per_second", "mfu", "data_wait_share", "tokens"):
        assert len(told[name]) == 100, name
    assert told["train_loss"][9] == step_event(100)["loss"]
    assert told["val_loss"][0] == eval_event(100)["val_loss"]
    assert told["seconds_per_step"][0] == pytest.approx(0.05)
    assert told["gpu"] == [None] * 100  # a CPU says nothing of a GPU
    assert told["run"]["model"]["size"] == "small"


def test_shares_of_a_step_sum_to_one() -> None:
    shares = History.from_events(a_run(50)).as_dict()["shares"]
    assert shares["backward"] == pytest.approx([0.5] * 5)
    assert sum(column[2] for column in shares.values()) == pytest.approx(1.0)
    assert span_shares({"spans": {"forward": 0.0, "backward": math.nan}}) == {}
    assert span_shares({}) == {}


def test_a_run_that_goes_back_forgets_what_it_does_again() -> None:
    events = [*a_run(560), *a_run(1000, first=500)]
    assert History.from_events(events).as_dict() == {
        **History.from_events(a_run(1000)).as_dict(),
        "run": {**History.from_events([run_event(500)]).run},
    }
    again = History.from_events(events)
    assert [sample["step"] for sample in again.samples] == list(range(100, 1001, 100))


def test_a_run_that_starts_over_forgets_everything() -> None:
    history = History.from_events([*a_run(560), run_event(0)])
    assert history.as_dict()["steps"] == []
    assert history.as_dict()["val_steps"] == []
    assert history.samples == []


def test_what_is_no_number_is_a_gap() -> None:
    history = History()
    history.add(step_event(10, loss=math.nan, grad_norm=math.inf))
    told = history.as_dict()
    assert told["train_loss"] == [None]
    assert told["grad_norm"] == [None]
    assert told["learning_rate"] != [None]


def test_a_long_run_stays_small() -> None:
    history = History(max_points=64, max_samples=30)
    for event in a_run(20_000, steps=20_000):
        history.add(event)
    told = history.as_dict()
    assert 32 <= len(told["steps"]) <= 64
    assert len(told["val_steps"]) <= 64
    assert told["val_loss"][-1] == eval_event(20_000)["val_loss"]  # never a mean of two evaluations
    assert len(history.samples) <= 30
    assert history.samples[-1]["step"] == 20_000
    assert history.samples[0]["step"] < 5_000


def test_samples_of_one_step_stay_together() -> None:
    history = History(max_samples=6)
    for step in range(10, 60, 10):
        for text in "abc":
            history.add(sample_event(step, text))
    steps = [sample["step"] for sample in history.samples]
    assert steps == sorted(steps)
    assert all(steps.count(step) == 3 for step in steps)
    assert steps[-1] == 50


def test_unknown_events_change_nothing() -> None:
    history = History.from_events(a_run(100))
    before = history.as_dict()
    for event in ({"kind": "loader", "batches": 3}, {"kind": "surprise"}, {"t": 1}):
        history.add(event)
    assert history.as_dict() == before
