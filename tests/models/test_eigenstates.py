"""Three computations of one recurrence: equal in value and in every gradient."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from headrace.errors import UsageError
from headrace.models.eigenstates import CHUNK, LEAST, follow, mix

LENGTHS = (1, 2, 5, CHUNK - 1, CHUNK, CHUNK + 1, 200, 517)


class Problem(NamedTuple):
    """Inputs of `mix` in float64, with values that float32 (or bfloat16) holds exactly."""

    q: Tensor
    b: Tensor
    v: Tensor
    log_decay: Tensor
    turn: Tensor
    state: Tensor | None
    doc_ids: Tensor | None
    weight: Tensor  # of what is read, in the loss
    state_weight: Tensor


def make(
    length: int,
    *,
    fixed: bool = False,
    documents: bool = False,
    state: bool = False,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Problem:
    generator = torch.Generator().manual_seed(seed)
    rows, heads, states, values = 2, 3, 4, 5

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype).double()

    log_decay = LEAST * torch.rand(1 if fixed else rows, 1 if fixed else length, heads, states, generator=generator)
    log_decay[..., 0] = -1e-6  # remembers for a million tokens
    log_decay[..., 1] = LEAST  # forgets as fast as is allowed
    log_decay[..., 2] = 0.0  # never forgets
    turn = torch.rand(log_decay.shape, generator=generator) - 0.5
    doc_ids = (torch.rand(rows, length, generator=generator) < 0.05).long().cumsum(1) if documents else None
    return Problem(
        q=normal(rows, length, heads, 2 * states),
        b=normal(rows, length, heads, 2 * states),
        v=normal(rows, length, heads, values),
        log_decay=log_decay.to(dtype).double(),
        turn=turn.to(dtype).double(),
        state=normal(rows, heads, 2 * states, values) if state else None,
        doc_ids=doc_ids,
        weight=normal(rows, length, heads, values),
        state_weight=normal(rows, heads, 2 * states, values),
    )


def solve(problem: Problem, method: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """What is read, the last state, and the gradients of everything."""
    given = {name: getattr(problem, name) for name in ("q", "b", "v", "log_decay", "turn", "state")}
    leaves = {name: x.to(dtype).clone().requires_grad_() for name, x in given.items() if x is not None}
    read, state = mix(**leaves, doc_ids=problem.doc_ids, method=method)
    ((read * problem.weight).sum() + (state * problem.state_weight).sum()).backward()
    gradients = {f"gradient of {name}": leaf.grad for name, leaf in leaves.items()}
    return {"read": read.detach(), "last state": state.detach(), **gradients}  # type: ignore[dict-item]


def difference(found: dict[str, Tensor], expected: dict[str, Tensor], floor: float = 1.0) -> dict[str, float]:
    """The largest error in each, as a share of the largest value where that is above 1."""
    assert found.keys() == expected.keys()
    return {
        name: float((found[name] - exact).abs().max() / exact.abs().max().clamp(min=floor))
        for name, exact in expected.items()
    }


@pytest.mark.parametrize("documents", [False, True], ids=["one document", "documents"])
@pytest.mark.parametrize("state", [False, True], ids=["from nothing", "from a state"])
@pytest.mark.parametrize("length", LENGTHS)
def test_selective_chunks_equal_the_recurrence(length: int, state: bool, documents: bool) -> None:
    problem = make(length, state=state, documents=documents)
    exact = solve(problem, "sequential", torch.float64)
    for method in ("sequential", "chunked"):
        errors = difference(solve(problem, method, torch.float32), exact)
        assert max(errors.values()) < 1e-4, (method, errors)


@pytest.mark.parametrize("state", [False, True], ids=["from nothing", "from a state"])
@pytest.mark.parametrize("length", LENGTHS)
def test_fixed_eigenvalues_by_all_three(length: int, state: bool) -> None:
    problem = make(length, fixed=True, state=state)
    exact = solve(problem, "sequential", torch.float64)
    for method in ("sequential", "chunked", "fft"):
        errors = difference(solve(problem, method, torch.float32), exact)
        assert max(errors.values()) < 1e-4, (method, errors)


@pytest.mark.parametrize("fixed", [False, True], ids=["selective", "fixed"])
@pytest.mark.parametrize("length", [7, 100, 517])
def test_inputs_in_bfloat16_are_computed_in_float32(length: int, fixed: bool) -> None:
    """Values agree as closely as in float32; gradients come back in bfloat16, one part in 256 apart."""
    problem = make(length, fixed=fixed, dtype=torch.bfloat16)
    exact = solve(problem, "sequential", torch.float64)
    for method in ("sequential", "chunked", *(["fft"] if fixed else [])):
        errors = difference(solve(problem, method, torch.bfloat16), exact)
        assert errors.pop("read") < 1e-4, method
        assert errors.pop("last state") < 1e-4, method
        assert max(errors.values()) < 1 / 128, (method, errors)


def test_in_double_precision_the_chunks_are_the_recurrence() -> None:
    problem = make(300, state=True, documents=True)
    errors = difference(solve(problem, "chunked", torch.float64), solve(problem, "sequential", torch.float64))
    assert max(errors.values()) < 1e-11, errors


def test_phases_stay_right_over_a_long_row() -> None:
    """The 20,000th token still reads the first at the right angle."""
    length = 20_001
    q = torch.tensor([1.0, 0.0]).expand(1, length, 1, 2)
    b = torch.zeros(1, length, 1, 2)
    b[0, 0, 0] = torch.tensor([1.0, 0.0])
    turn = torch.full((1, 1, 1, 1), 0.123_456_7)
    read, _ = mix(q, b, torch.ones(1, length, 1, 1), torch.zeros(1, 1, 1, 1), turn, method="chunked")
    angle = 2 * torch.pi * turn.double() * torch.arange(length)[:, None, None]
    assert float((read[0, :, 0, 0] - angle.cos()[..., 0, 0].flatten()).abs().max()) < 1e-3


def test_under_autocast_only_the_products_are_narrow() -> None:
    problem = make(300)
    exact = solve(problem, "sequential", torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        errors = difference(solve(problem, "chunked", torch.float32), exact)
    assert max(errors.values()) < 0.05, errors


def test_a_row_in_pieces_is_the_row() -> None:
    problem = make(150)
    inputs = [x.float() for x in problem[:3]] + [problem.log_decay.float(), problem.turn.float()]
    whole, last = mix(*inputs, method="chunked")
    state, parts = None, []
    for begin, end in ((0, 1), (1, 70), (70, 72), (72, 150)):
        part, state = mix(*(x[:, begin:end] for x in inputs), state=state)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-4, rtol=1e-4)
    assert state is not None
    torch.testing.assert_close(state, last, atol=1e-4, rtol=1e-4)


def test_documents_do_not_see_each_other() -> None:
    problem = make(150)
    doc_ids = torch.zeros(2, 150, dtype=torch.int64)
    doc_ids[:, 37:] = 1
    doc_ids[:, 100:] = 2
    inputs = [x.float() for x in problem[:3]] + [problem.log_decay.float(), problem.turn.float()]
    packed, last = mix(*inputs, doc_ids=doc_ids, method="chunked")
    for begin, end in ((0, 37), (37, 100), (100, 150)):
        alone, state = mix(*(x[:, begin:end] for x in inputs), method="chunked")
        torch.testing.assert_close(packed[:, begin:end], alone, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(last, state, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("documents", [False, True], ids=["one document", "documents"])
def test_numbers_in_eigenstates_follow_the_recurrence(documents: bool) -> None:
    problem = make(333, fixed=True, documents=documents)
    inputs = torch.complex(problem.b[..., :4], problem.b[..., 4:])
    exact = follow(inputs, problem.log_decay, problem.turn, doc_ids=problem.doc_ids, method="sequential")
    found = follow(inputs.to(torch.complex64), problem.log_decay.float(), problem.turn.float(), doc_ids=problem.doc_ids)
    assert float((found - exact).abs().max() / exact.abs().max()) < 1e-4


def test_fft_refuses_eigenvalues_that_change() -> None:
    problem = make(10)
    with pytest.raises(UsageError, match="same for all tokens"):
        mix(*(x.float() for x in problem[:5]), method="fft")


def test_unknown_method() -> None:
    problem = make(10)
    with pytest.raises(UsageError, match=r"'magic'.*sequential, fft, chunked"):
        mix(*(x.float() for x in problem[:5]), method="magic")
