"""One iteration is one turn of all optimizers."""

from __future__ import annotations

import pytest

from headrace.diagnosis.probe.recording import Recording


def iterations(optimizers: str) -> int:
    """Steps that are counted when these optimizers step, each after a backward pass of its own."""
    recording = Recording(warmup=1)
    for name in optimizers:
        recording.steps.backwards += 1
        recording.step_ended(ord(name))
    return recording.steps.count


@pytest.mark.parametrize(
    ("optimizers", "count"),
    [
        ("AAAAAA", 6),
        ("DGDGDGDG", 4),
        ("DDDDDG" * 4, 4),
        ("DGG" * 5, 5),
        ("AAAA" + "BBBB", 8),  # first one model, then another
        ("DDDD" + "DGDGDG", 7),  # D alone at first: DDD, then DG four times
        ("DGDGDG" + "AAA", 6),
        ("AAAAABAAAAAAABAAA", 17),  # no rhythm
    ],
)
def test_iterations(optimizers: str, count: int) -> None:
    assert iterations(optimizers) == count


def test_steps_before_the_rhythm_are_warm_up() -> None:
    recording = Recording(warmup=1)
    for name in "DGDGDGDGDG":
        recording.steps.backwards = 1
        recording.step_ended(ord(name))
    steps = recording.steps
    assert (steps.first.steps, steps.early.steps, steps.late.steps) == (2, 0, 3)
    assert len(steps.timeline) == steps.count == 5


def test_second_optimizer_without_a_backward_pass_ends_nothing() -> None:
    recording = Recording(warmup=1)
    for _ in range(3):
        recording.steps.backwards = 1
        recording.step_ended(1)
        recording.step_ended(2)
    assert recording.steps.count == 3
