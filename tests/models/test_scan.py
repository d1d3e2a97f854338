"""The recurrence: token by token, in blocks and by FFT it has the same values and the same gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd.gradcheck import gradcheck

from headrace.errors import UsageError
from headrace.models.scan import FEW, scan

CHANNELS = 6


def example(
    length: int, *, fixed: bool, dtype: torch.dtype = torch.float64, rows: int = 2, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Decays, inputs and a first state; of the decays some are 0, 1 and 0.9999."""
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, length, CHANNELS)
    size = torch.rand((1, 1, CHANNELS) if fixed else shape, generator=generator, dtype=torch.float64)
    size[..., 0], size[..., 1], size[..., 2] = 0.0, 1.0, 0.9999
    if not fixed:
        size[:, length // 2] = 0.0  # a fresh start
    inputs = torch.randn(shape, generator=generator, dtype=dtype)
    initial = torch.randn(rows, CHANNELS, generator=generator, dtype=dtype)
    if dtype.is_complex:
        return torch.polar(size, 6 * torch.rand(size.shape, generator=generator, dtype=torch.float64)), inputs, initial
    return size.to(dtype), inputs, initial


def by_hand(decay: Tensor, inputs: Tensor, initial: Tensor) -> Tensor:
    """The definition, number by number."""
    decay = decay.expand_as(inputs)
    states = torch.empty_like(inputs)
    for row in range(len(inputs)):
        for channel in range(inputs.shape[2]):
            state = initial[row, channel]
            for t in range(inputs.shape[1]):
                state = decay[row, t, channel] * state + inputs[row, t, channel]
                states[row, t, channel] = state
    return states


def with_gradients(method: str, decay: Tensor, inputs: Tensor, initial: Tensor | None) -> list[Tensor]:
    """States, and the gradients of a weighted sum of them, in which every state has another weight."""
    leaves = [x.detach().clone().requires_grad_() for x in (decay, inputs, initial) if x is not None]
    states = scan(leaves[0], leaves[1], leaves[2] if initial is not None else None, method=method)
    weights = torch.linspace(-1, 2, states.numel(), dtype=torch.float64).reshape(states.shape).to(states.dtype)
    total = (states * weights).sum()
    (total.real + 2 * total.imag if total.is_complex() else total).backward()
    gradients = [leaf.grad for leaf in leaves]
    assert all(grad is not None and grad.dtype == leaf.dtype for grad, leaf in zip(gradients, leaves, strict=True))
    return [states.detach(), *[grad for grad in gradients if grad is not None]]


def assert_same(found: list[Tensor], wanted: list[Tensor], tolerance: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance * (1 + float(other.abs().max())))


@pytest.mark.parametrize("method", ["sequential", "blocks", "fft", "auto"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("length", [1, 7, 33])
def test_is_the_definition(method: str, dtype: torch.dtype, length: int) -> None:
    decay, inputs, initial = example(length, fixed=True, dtype=dtype)
    found = scan(decay, inputs, initial, method=method)
    torch.testing.assert_close(found, by_hand(decay, inputs, initial), rtol=0, atol=1e-12)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("length", [1, 2, FEW, FEW + 1, 33, 100, 257])
def test_all_ways_agree(length: int, dtype: torch.dtype, first: bool) -> None:
    for fixed, methods in ((True, ("blocks", "fft", "auto")), (False, ("blocks", "auto"))):
        decay, inputs, initial = example(length, fixed=fixed, dtype=dtype)
        wanted = with_gradients("sequential", decay, inputs, initial if first else None)
        for method in methods:
            found = with_gradients(method, decay, inputs, initial if first else None)
            assert_same(found, wanted, 1e-11)


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(1, 150), rows=st.integers(1, 3), seed=st.integers(0, 1000), fixed=st.booleans(),
    double=st.booleans(),
)  # fmt: skip
def test_any_length(length: int, rows: int, seed: int, fixed: bool, double: bool) -> None:
    decay, inputs, initial = example(length, fixed=fixed, rows=rows, seed=seed)
    decay, inputs, initial = (x if double else x.float() for x in (decay, inputs, initial))
    wanted = with_gradients("sequential", decay.double(), inputs.double(), initial.double())
    for method in ("sequential", "blocks", *(["fft"] if fixed else [])):
        found = [x.double() for x in with_gradients(method, decay, inputs, initial)]
        assert_same(found, wanted, 1e-10 if double else 1e-4)


@pytest.mark.parametrize("length", [5, 100, 301])
@pytest.mark.parametrize("method", ["sequential", "blocks"])
def test_half_precision(length: int, method: str) -> None:
    """Every product and every sum is rounded to 8 bits."""
    decay, inputs, initial = example(length, fixed=False)
    decay = decay * 0.95
    decay, inputs, initial = (x.bfloat16() for x in (decay, inputs, initial))
    wanted = with_gradients("sequential", decay.double(), inputs.double(), initial.double())
    found = with_gradients(method, decay, inputs, initial)
    assert {x.dtype for x in found} == {torch.bfloat16}
    assert_same([x.double() for x in found], wanted, 0.1)


@pytest.mark.parametrize("method", ["sequential", "blocks", "fft"])
@pytest.mark.parametrize("shape", [(2, 1, 3), (1, 1, 1)])
def test_decays_that_broadcast(method: str, shape: tuple[int, ...]) -> None:
    decay = torch.full(shape, 0.9, dtype=torch.float64)
    inputs = torch.randn(2, 40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = with_gradients(method, decay, inputs, None)
    wanted = with_gradients("sequential", decay.expand(2, 40, 3), inputs, None)
    wanted[1] = wanted[1].sum_to_size(shape)
    assert_same(found, wanted, 1e-11)


def test_more_dimensions() -> None:
    decay = torch.rand(1, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    inputs = torch.randn(2, 30, 3, 4, generator=torch.Generator().manual_seed(1))
    found = scan(decay, inputs, method="blocks")
    flat = scan(decay.flatten(2), inputs.flatten(2), method="sequential")
    torch.testing.assert_close(found.flatten(2), flat)


def test_a_real_decay_of_complex_states_has_a_real_gradient() -> None:
    decay = torch.rand(1, 1, CHANNELS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inputs = example(40, fixed=True, dtype=torch.complex128)[1]
    assert_same(with_gradients("blocks", decay, inputs, None), with_gradients("sequential", decay, inputs, None), 1e-11)


def test_gradients_are_those_of_differences() -> None:
    decay, inputs, initial = (x.requires_grad_() for x in example(FEW + 3, fixed=False, rows=1))
    assert gradcheck(lambda *x: scan(*x, method="blocks"), (decay, inputs, initial))


@pytest.mark.parametrize("method", ["sequential", "blocks", "fft"])
def test_a_row_goes_on_where_it_was_cut(method: str) -> None:
    decay, inputs, initial = example(101, fixed=True)
    whole, state, parts = scan(decay, inputs, initial, method=method), initial, []
    for part in inputs.split([13, 1, 40, 47], 1):
        parts.append(scan(decay, part, state, method=method))
        state = parts[-1][:, -1]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=0, atol=1e-11)


def test_nothing_is_lost_in_long_rows() -> None:
    """Decays of 1 sum up and decays of 0 forget, exactly: no logarithm, no quotient, no power that underflows."""
    length = 5000
    decay = torch.tensor([1.0, 0.0, 1e-20]).expand(1, 1, 3)
    found = scan(decay, torch.ones(1, length, 3), method="blocks")
    assert torch.equal(found[0, :, 0], torch.arange(1.0, length + 1))
    assert torch.equal(found[0, :, 1:], torch.ones(length, 2))


def test_on_tensors_without_values() -> None:
    """Whatever asked the device for a number would raise here."""
    decay, inputs = torch.rand(1, 1, 3, device="meta"), torch.rand(2, 50, 3, device="meta", requires_grad=True)
    for method in ("sequential", "blocks", "fft"):
        assert scan(decay, inputs, method=method).shape == (2, 50, 3)
        scan(decay, inputs, method=method).sum().backward()


@pytest.mark.parametrize(
    ("decay", "inputs", "options", "words"),
    [
        ((1, 1, 3), (2, 9, 3), {"method": "fast"}, "method 'fast': it must be one of auto, sequential"),
        ((3,), (2, 9, 3), {}, r"decays of shape \[3\] for inputs of shape \[2, 9, 3\]"),
        ((1, 4, 3), (2, 9, 3), {}, "along the second one entry or as many"),
        ((1, 9, 3), (2, 9, 3), {"method": "fft"}, "Use 'blocks'"),
    ],
)
def test_what_it_refuses(decay: tuple[int, ...], inputs: tuple[int, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        scan(torch.ones(decay), torch.ones(inputs), **options)
