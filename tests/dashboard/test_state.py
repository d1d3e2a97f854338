from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conftest_dashboard import a_run, eval_event, rows, run_event, sample_event, step_event
from headrace.dashboard.answers import columns, evals
from headrace.dashboard.state import RunState
from headrace.telemetry import encode_json
from headrace.training.history import History


def taken(events: Any, *, slice_: int = 10**9) -> RunState:
    state, text = RunState(), b"".join(encode_json(event) + b"\n" for event in events)
    at = 0
    while at < len(text):
        end = text.rfind(b"\n", at, at + slice_) + 1 or text.index(b"\n", at) + 1
        state.take(text[at:end], at)
        at = end
    assert state.end == len(text)
    return state


@pytest.mark.parametrize("slice_", [700, 5000, 10**9])
def test_columns_are_those_of_the_history(slice_: int) -> None:
    events = list(a_run(1000))
    history = History.from_events(events).as_dict()
    found = columns(taken(events, slice_=slice_), 0, 10**6, 10**6)
    assert found["steps"] == history["steps"]
    for name in ("train_loss", "learning_rate", "grad_norm", "tokens_per_second", "mfu", "seconds_per_step", "cpu"):
        assert found[name] == pytest.approx(history[name], rel=1e-6), name
    assert found["shares"]["forward"] == pytest.approx(history["shares"]["forward"], rel=1e-6)
    assert found["shares"]["host_sync"] == pytest.approx(history["shares"]["sync"], rel=1e-6)
    assert found["gpu"] == [None] * len(history["steps"])


def test_a_run_that_went_back_forgets_what_came_later() -> None:
    events = [*a_run(500), *a_run(700, first=300)]
    state = taken(events)
    history = History.from_events(events).as_dict()
    assert columns(state, 0, 10**6, 10**6)["steps"] == history["steps"]
    assert evals(state, 0, 10**6, 10**6)["steps"] == history["val_steps"]
    assert [placed.said["step"] for placed in state.samples] == [100, 200, 300, 400, 500, 600, 700]
    assert list(state.resumes) == [300]
    assert state.went_back > 0


def test_going_on_without_a_loss_of_rows_is_no_going_back() -> None:
    state = taken([*a_run(500), *a_run(700, first=500)])
    assert list(state.resumes) == [500]
    assert state.went_back == -1


def test_a_step_that_is_told_again_takes_its_place() -> None:
    state = taken([run_event(), *rows(1, 50), step_event(50, steps=1, loss=9.0, losses=[9.0])])
    assert len(state.steps) == 50
    assert columns(state, 49, 50, 10)["train_loss"] == [9.0]


def test_lines_that_are_no_events_change_nothing() -> None:
    state = RunState()
    lines = [
        b"{cut",
        b"",
        b"[]",
        b'{"kind":7}',
        b'{"kind":"step","step":"one"}',
        b'{"kind":"step"}',
        b'{"kind":"eval"}',
    ]
    lines += [b'{"kind":"unheard of","step":5}', b'{"kind":"step","step":3,"loss":1.5}', b"\xff\xfe"]
    state.take(b"\n".join(lines) + b"\n", 0)
    assert columns(state, 0, 9, 9)["steps"] == [3]


def test_extremes_are_of_the_steps_in_an_interval() -> None:
    state = taken([run_event(), step_event(10, loss=2.0, losses=[1.0, 2.0, None, 3.0])])
    found = columns(state, 0, 1, 10)
    assert (found["train_loss_min"], found["train_loss"], found["train_loss_max"]) == ([1.0], [2.0], [3.0])


def test_the_device_says_where_its_time_went() -> None:
    """The host of a GPU only launches: what it waited for data is not on the device's clock."""
    spans = {"data_wait": 0.2, "host_to_device": 0.0, "forward": 0.1, "backward": 0.1, "sync": 0.6}
    device = {"host_to_device": 0.3, "forward": 0.3, "backward": 0.4}
    shares = columns(taken([run_event(), step_event(10, spans=spans, device_spans=device)]), 0, 1, 10)["shares"]
    assert shares["data_wait"] == pytest.approx([0.2])
    assert shares["host_to_device"] == pytest.approx([0.1])
    assert shares["backward"] == pytest.approx([0.4])


def test_metrics_of_a_model_come_and_go() -> None:
    state = taken([run_event(), step_event(10), step_event(20, metrics={"rate": 0.1}), step_event(30)])
    assert columns(state, 0, 3, 10)["metrics"] == {"rate": pytest.approx([np.nan, 0.1, np.nan], nan_ok=True)}


def test_sources_of_a_mixture_are_followed() -> None:
    def sources(step: int) -> dict[str, Any]:
        code = {"samples": step, "tokens": 64 * step, "epochs": step / 100, "target": 0.25}
        return {"sources": {"web": {**code, "samples": 3 * step, "target": 0.75}, "code": code}}

    state = taken([run_event(), *(step_event(step, **sources(step)) for step in range(10, 500, 10))])
    mix = state.mix.as_dict()
    assert mix is not None
    assert mix["steps"][-1] == 490
    assert [(one["name"], one["target"], one["actual"]) for one in mix["sources"]] == [
        ("web", 0.75, 0.75),
        ("code", 0.25, 0.25),
    ]


def test_texts_and_messages_are_bounded() -> None:
    events = [run_event(), *(sample_event(step) for step in range(1000)), *(eval_event(step) for step in range(5))]
    events += [{"t": 1.0, "kind": "message", "text": f"word {number}"} for number in range(1000)]
    state = taken(events)
    assert len(state.samples) == 300
    assert len(state.messages) == 200
    assert state.messages[-1].said["text"] == "word 999"
