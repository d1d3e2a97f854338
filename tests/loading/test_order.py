"""The shuffle: every chunk of an epoch once, at any size, in an order that no release may change."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import UsageError
from headrace.loading.order import MAX_LENGTH, derived_seed, invert, permute

seeds = st.integers(0, 2**64 - 1)
epochs = st.integers(0, 2**40)


def whole(n: int, seed: int = 0, epoch: int = 0) -> np.ndarray:
    return permute(np.arange(n), n, seed=seed, epoch=epoch)


def test_golden_order() -> None:
    """Frozen: if this fails, every run that resumes with this release reads other batches than it would have."""
    assert whole(10, seed=0, epoch=0).tolist() == [1, 3, 2, 4, 6, 7, 8, 5, 0, 9]
    assert whole(1000, seed=1, epoch=2)[:8].tolist() == [857, 311, 992, 3, 9, 943, 469, 315]
    huge = permute(np.array([0, 1, 10**12, 2**40 + 6]), 2**40 + 7, seed=2**63, epoch=5)
    assert huge.tolist() == [310663633951, 561619578679, 903439118875, 1083714575497]
    assert derived_seed(0, 0) == 12035550249420947055
    assert derived_seed(7, 1) == 11984929618412882174


def test_bijection_for_every_small_n() -> None:
    for n in range(1, 301):
        assert sorted(whole(n, seed=n, epoch=n % 3).tolist()) == list(range(n))


@pytest.mark.parametrize("n", [4_095, 4_096, 4_097, 65_537, 999_983, 2**20, 2**20 + 1, 2_000_000])
def test_bijection_for_millions(n: int) -> None:
    assert (np.bincount(whole(n, seed=3, epoch=1), minlength=n) == 1).all()


@given(st.integers(2**40, MAX_LENGTH), seeds, epochs, st.data())
def test_bijection_on_samples_of_huge_n(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=50, unique=True))
    positions = np.array([0, n - 1, *some])
    chunks = permute(positions, n, seed=seed, epoch=epoch)
    assert chunks.min() >= 0
    assert chunks.max() < n
    assert len(np.unique(chunks)) == len(np.unique(positions))
    assert (invert(chunks, n, seed=seed, epoch=epoch) == positions).all()


@given(st.integers(1, 5_000), seeds, epochs)
def test_invert(n: int, seed: int, epoch: int) -> None:
    assert (invert(whole(n, seed, epoch), n, seed=seed, epoch=epoch) == np.arange(n)).all()


@given(st.integers(1, 200), seeds, st.lists(st.tuples(st.integers(0, 199), st.integers(0, 5)), max_size=60))
def test_many_epochs_at_once_are_each_epoch_alone(n: int, seed: int, pairs: list[tuple[int, int]]) -> None:
    positions = np.array([position % n for position, _ in pairs], np.int64)
    epoch = np.array([number for _, number in pairs], np.int64)
    alone = [int(whole(n, seed, e)[p]) for p, e in zip(positions.tolist(), epoch.tolist(), strict=True)]
    together = permute(positions, n, seed=seed, epoch=epoch)
    assert together.tolist() == alone
    assert (invert(together, n, seed=seed, epoch=epoch) == positions).all()


def test_every_seed_and_epoch_has_its_own_order() -> None:
    orders = {tuple(whole(50, seed, epoch).tolist()) for seed in range(-10, 10) for epoch in range(20)}
    assert len(orders) == 400
    for other in (whole(100_000, 0, 1), whole(100_000, 1, 0)):
        same_place = (whole(100_000, 0, 0) == other).sum()
        assert same_place < 10  # 1 is expected


def test_all_orders_of_four_are_equally_likely() -> None:
    epoch = np.repeat(np.arange(4_800), 4)
    orders = permute(np.tile(np.arange(4), 4_800), 4, seed=0, epoch=epoch).reshape(-1, 4)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert ((counts - 200) ** 2 / 200).sum() < 50  # 99.9% of the chi-square distribution with 23 degrees


@pytest.mark.parametrize("n", [256, 1_000, 97_657, 1_000_003, 2**40 + 7])
def test_not_nearly_sequential(n: int) -> None:
    positions = np.arange(min(n, 100_000))
    chunks = permute(positions, n, seed=1, epoch=0)
    bins = np.bincount((chunks / n * 16).astype(int), minlength=16)
    assert ((bins - len(chunks) / 16) ** 2 / (len(chunks) / 16)).sum() < 40  # 15 degrees: 99.95%
    apart = np.abs(np.diff(chunks)) / n
    assert apart.mean() == pytest.approx(1 / 3, abs=0.05)  # as for two numbers drawn at random
    assert (np.abs(np.diff(chunks)) == 1).sum() <= 12  # about 2 neighbours stay neighbours


def test_neighbours_are_uncorrelated() -> None:
    chunks = whole(2**17, seed=4) >> 11  # 64 bins
    for stride in (1, 2, 64, 256, 362, 512):  # 2^8 and 2^9: the halves of the network
        pairs = np.bincount(chunks[:-stride] * 64 + chunks[stride:], minlength=4096)
        expected = (len(chunks) - stride) / 4096
        assert ((pairs - expected) ** 2 / expected).sum() < 4096 + 4 * (2 * 4096) ** 0.5


def test_no_overflow_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        largest = permute(np.array([0]), MAX_LENGTH, seed=-1, epoch=2**62)
        smallest = permute(np.array([0, 1]), 2, seed=2**70, epoch=np.array([0, 2**62]))
    assert 0 <= largest[0] < MAX_LENGTH
    assert set(smallest.tolist()) <= {0, 1}


def test_nothing_to_permute() -> None:
    none = np.zeros(0, np.int64)
    assert permute(none, 5, seed=0, epoch=0).tolist() == []
    assert permute(none, 5, seed=0, epoch=none).tolist() == []


@pytest.mark.parametrize("n", [0, -1, MAX_LENGTH + 1])
def test_length_out_of_range(n: int) -> None:
    with pytest.raises(UsageError, match=r"1 to 2\^62"):
        permute(np.array([0]), n, seed=0, epoch=0)


@pytest.mark.parametrize("position", [-1, 10, 11, 2**62])
def test_position_out_of_range(position: int) -> None:
    with pytest.raises(IndexError, match=f"position {position} of 10"):
        permute(np.array([3, position]), 10, seed=0, epoch=0)
