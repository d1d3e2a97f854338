"""Every generator goes on where it was, also by way of a file that weights_only reads."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from headrace.training.randomness import restore_rng, rng_state


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    before = rng_state()
    yield
    restore_rng(before)


def draw() -> tuple[Any, ...]:
    # gauss() and standard_normal() keep a second value for the next call, which the state must carry too.
    return random.random(), random.gauss(0, 1), np.random.standard_normal(3).tolist(), torch.randn(4).tolist()


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def test_the_same_numbers_come_again() -> None:
    draw()
    state = through_a_file(rng_state())
    first = [draw() for _ in range(3)]
    assert [draw() for _ in range(3)] != first
    restore_rng(state)
    assert [draw() for _ in range(3)] == first


def test_the_state_does_not_move_with_its_generator() -> None:
    state = rng_state()
    first = draw()
    restore_rng(state)
    assert draw() == first
    restore_rng(state)
    assert draw() == first


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_devices() -> None:
    state = through_a_file(rng_state())
    assert len(state["cuda"]) == torch.cuda.device_count()
    first = torch.randn(4, device="cuda").tolist()
    restore_rng(state)
    assert torch.randn(4, device="cuda").tolist() == first


def test_a_state_of_more_devices_than_there_are() -> None:
    state = rng_state()
    present = torch.cuda.device_count()
    state["cuda"] = [*state["cuda"], torch.zeros(16, dtype=torch.uint8)]
    restore_rng(state)
    assert torch.cuda.device_count() == present
    assert torch.equal(torch.get_rng_state(), state["torch"])
