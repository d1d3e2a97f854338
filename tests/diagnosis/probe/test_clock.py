"""Time belongs to the innermost phase, and to no other."""

from __future__ import annotations

import pytest

from headrace.diagnosis.probe import clock as clock_module
from headrace.diagnosis.probe.clock import Clock
from headrace.diagnosis.probe.steps import Steps


class Hands:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    hands = Hands()
    monkeypatch.setattr(clock_module, "perf_counter", hands)
    return hands


def test_what_is_inside_is_not_counted_twice(hands: Hands) -> None:
    clock = Clock()
    hands.now += 1
    outer = clock.enter("data_wait")
    hands.now += 2
    inner = clock.enter("tokenization")
    hands.now += 4
    assert clock.leave(inner) == 4
    hands.now += 8
    assert clock.leave(outer) == 10
    hands.now += 16
    assert clock.take() == ({"python": 17, "data_wait": 10, "tokenization": 4}, {})


def test_take_begins_anew(hands: Hands) -> None:
    clock = Clock()
    hands.now += 1
    clock.take()
    hands.now += 2
    assert clock.take()[0] == {"python": 2}


def test_time_can_be_moved_afterwards(hands: Hands) -> None:
    clock = Clock()
    hands.now += 3
    clock.move(2, "host_to_device")
    assert clock.take()[0] == {"python": 1, "host_to_device": 2}


def test_lines_add_up() -> None:
    clock = Clock()
    key = ("host_sync", "Tensor.item", "train.py", 3, "main", "")
    clock.add(key, 0.5)
    clock.add(key, 0.25, 2.0)
    assert clock.take()[1] == {key: [2.0, 0.75, 2.0]}


def test_steps_are_folded_into_first_early_and_late() -> None:
    steps = Steps(Clock(), warmup=3)
    for _ in range(5):
        steps.backwards = 4  # gathered gradients are one step
        steps.finish()
    assert (steps.first.steps, steps.early.steps, steps.late.steps, steps.count) == (1, 2, 2, 5)


def test_compiling_is_in_no_step(hands: Hands) -> None:
    clock = Clock()
    steps = Steps(clock, warmup=1)
    before = clock.enter("compile")
    hands.now += 9
    clock.leave(before)
    steps.finish()
    assert "compile" not in steps.timeline[0]
    assert (steps.compiling, steps.as_dict()["compiling"]) == (9, 9)


def test_a_phase_can_turn_into_another(hands: Hands) -> None:
    clock = Clock()
    clock.enter("forward")
    hands.now += 2
    clock.turn("optimizer")
    hands.now += 4
    clock.leave(0.0)
    assert clock.take()[0] == {"python": 0, "forward": 2, "optimizer": 4}


def test_the_loop_inside_an_optimizer_is_not_the_optimizer() -> None:
    clock = Clock()
    clock.enter("optimizer")
    assert clock.within("optimizer")
    clock.enter("python")  # Lightning's closure
    assert not clock.within("optimizer")
    clock.enter("data_wait")
    assert clock.within("data_wait")


def test_time_of_the_probe_itself_is_left_out(hands: Hands) -> None:
    clock = Clock()
    steps = Steps(clock, warmup=1)
    before = clock.enter("probe")
    hands.now += 5
    clock.leave(before)
    steps.backwards = 1
    steps.finish()
    assert "probe" not in steps.first.phases
    assert "probe" not in steps.timeline[0]
