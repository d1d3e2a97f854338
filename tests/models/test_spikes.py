"""Spikes: who wins in a column, and the gradient that stands in for a step's."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.models.spikes import Rule, _by_network, _sorting_network, fire, weakest_winner


def potentials(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_winners_of_each_column_fire() -> None:
    potential = potentials(2, 50, 48)
    columns, spikes = potential.unflatten(-1, (3, 16)), fire(potential, Rule(16, 3, 1.0)).unflatten(-1, (3, 16))
    assert spikes.unique().tolist() == [0.0, 1.0]
    ranks = columns.argsort(descending=True).argsort()
    assert torch.equal(spikes.bool(), (ranks < 3) & (columns > 0))
    assert (spikes.sum(-1) == 3).any()
    assert not fire(potential - 10, Rule(16, 3, 1.0)).any()  # winning is not enough: the threshold has to be reached


def test_gradient_is_the_slope_of_an_arc_tangent() -> None:
    potential = torch.tensor([0.1, 2.0, 1.5, -1.0, -0.5, -0.25, -3.0, 0.0], dtype=torch.float64, requires_grad=True)
    spikes = fire(potential, Rule(4, 2, 0.5))
    assert spikes.tolist() == [0, 1, 1, 0, 0, 0, 0, 1]
    weights = torch.arange(1.0, 9.0, dtype=torch.float64)
    (spikes * weights).sum().backward()
    decided = torch.tensor([1.5] * 4 + [0.0] * 4, dtype=torch.float64)  # by a rival, and by the threshold
    torch.testing.assert_close(potential.grad, weights / (1 + ((potential.detach() - decided) / 0.5) ** 2))


@settings(max_examples=60, deadline=None)
@given(power=st.integers(1, 6), data=st.data(), seed=st.integers(0, 1000))
def test_network_finds_what_topk_finds(power: int, data: st.DataObject, seed: int) -> None:
    winners = 1 << data.draw(st.integers(0, power - 1))
    columns = potentials(2, 3, 1 << power, seed=seed)
    columns = columns.round(decimals=data.draw(st.sampled_from([1, 9])))  # ties as well
    assert torch.equal(_by_network(columns, winners), columns.topk(winners).values[..., -1:])


@pytest.mark.parametrize(("size", "winners"), [(16, 3), (12, 4), (7, 1)])
def test_any_column(size: int, winners: int) -> None:
    columns = potentials(5, 2, size)
    assert torch.equal(weakest_winner(columns, winners), columns.topk(winners).values[..., -1:])


@pytest.mark.parametrize(("count", "comparisons"), [(1, 0), (2, 1), (4, 5), (8, 19), (16, 63)])
def test_sorting_network_sorts_whatever_is_0_or_1(count: int, comparisons: int) -> None:
    """Which proves that it sorts everything."""
    pairs = list(_sorting_network(count))
    assert len(pairs) == comparisons
    rows = (torch.arange(1 << count)[:, None] >> torch.arange(count)) & 1
    for i, j in pairs:
        rows[:, i], rows[:, j] = torch.maximum(rows[:, i], rows[:, j]), torch.minimum(rows[:, i], rows[:, j])
    assert (rows.diff(dim=1) <= 0).all()
