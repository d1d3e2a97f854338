"""Mixing: exact to one sample at every prefix, nothing repeated or skipped, and a change leaves the past alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import UsageError
from headrace.loading.mixture import Mix, Mixture
from headrace.loading.quota import MAX_PERIOD, Quota, quantise
from headrace.loading.sampler import Sampler
from headrace.loading.schedule import Schedule

counts_lists = st.lists(st.integers(0, 40), min_size=1, max_size=9).filter(any)
weight_lists = st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(tuple)
schedules = st.dictionaries(st.integers(1, 300), weight_lists, max_size=4)


def worst_deviation(counts: list[int], samples: int) -> int:
    """The largest |count_i(s) P - s c_i| over all prefixes s and sources i: below P means off by less than a sample."""
    source, _ = Quota(counts).assign(np.arange(samples))
    given_out = np.cumsum(source[:, None] == np.arange(len(counts)), axis=0)
    prefix = np.arange(1, samples + 1)[:, None]
    return int(np.abs(given_out * sum(counts) - prefix * np.array(counts)).max())


@given(counts_lists)
def test_exact_to_one_sample_at_every_prefix(counts: list[int]) -> None:
    assert worst_deviation(counts, 3 * sum(counts) + 1) < sum(counts)


@pytest.mark.parametrize("counts", [[30, 30, 30, 9, 1], [9, 1, 4, 9, 9, 4, 12, 9]])
def test_exact_to_one_sample_where_the_largest_deficit_first_is_not(counts: list[int]) -> None:
    assert worst_deviation(counts, 2 * sum(counts)) < sum(counts)


def test_exact_to_one_sample_in_a_full_table() -> None:
    counts = quantise([math.pi, math.e, math.sqrt(2), 1.0, 0.1, 0.003])
    assert worst_deviation(counts, sum(counts)) < sum(counts)


@given(st.dictionaries(st.integers(0, 300), weight_lists, max_size=4))
def test_each_source_counts_up_without_gap_or_repeat(changes: dict[int, tuple[float, ...]]) -> None:
    schedule = Schedule({0: (0.2, 0.5, 0.3), **changes})
    source, nth = schedule.assign(np.arange(400))
    for index in range(3):
        mine = nth[source == index]
        assert mine.tolist() == list(range(len(mine)))
    assert schedule.taken(400).tolist() == np.bincount(source, minlength=3).tolist()


@given(schedules, st.lists(st.integers(0, 500), max_size=40))
def test_random_access_is_the_enumeration(changes: dict[int, tuple[float, ...]], wanted: list[int]) -> None:
    schedule = Schedule({0: (3.0, 1.0, 1.0), **changes})
    source, nth = schedule.assign(np.arange(501))
    some = np.array(wanted, np.int64)
    for whole, picked in zip((source, nth), schedule.assign(some), strict=True):
        assert picked.tolist() == whole[some].tolist()


@given(st.integers(0, 2**55), st.lists(st.integers(1, 50), min_size=2, max_size=5))
def test_far_samples(start: int, counts: list[int]) -> None:
    quota = Quota(counts)
    source, nth = quota.assign(np.arange(start, start + 100))
    before = quota.taken(start)
    for index in range(len(counts)):
        mine = nth[source == index]
        assert (mine == before[index] + np.arange(len(mine))).all()
        assert abs(int(before[index]) * quota.period - start * counts[index]) < quota.period


@given(schedules, st.integers(1, 400), weight_lists)
def test_a_change_leaves_the_past_as_it_was(
    changes: dict[int, tuple[float, ...]], at: int, weights: tuple[float, ...]
) -> None:
    names = ["a", "b", "c"]
    mixture = Mixture(
        dict(zip(names, (1, 2, 3), strict=True)),
        changes={sample: dict(zip(names, new, strict=True)) for sample, new in changes.items()},
    )
    changed = mixture.with_change(at, {**dict(zip(names, weights, strict=True)), "new": 0.5})
    before = Sampler(mixture, [11, 50, 7], seed=3).locate(np.arange(at))
    after = Sampler(changed, [11, 50, 7, 9], seed=3).locate(np.arange(at))
    assert all((old == new).all() for old, new in zip(before, after, strict=True))
    drawn = Sampler(changed, [11, 50, 7, 9], seed=3).locate(np.arange(at, at + 30))
    assert 3 in drawn.source or any(sample in range(at + 1, at + 30) for sample in changes)


@given(weight_lists, st.lists(st.integers(1, 40), min_size=3, max_size=3), st.integers(0, 99))
def test_every_chunk_once_per_epoch(weights: tuple[float, ...], sizes: list[int], seed: int) -> None:
    sampler = Sampler(Mixture(dict(zip("abc", weights, strict=True))), sizes, seed=seed)
    source, chunk, epoch = sampler.locate(np.arange(300))
    for index, progress in enumerate(sampler.progress(300)):
        mine, turn = chunk[source == index], epoch[source == index]
        assert progress == ("abc"[index], len(mine), sizes[index])
        assert turn.tolist() == [k // sizes[index] for k in range(len(mine))]
        for full in range(progress.epoch):
            assert sorted(mine[turn == full].tolist()) == list(range(sizes[index]))
        rest = mine[turn == progress.epoch]
        assert len(np.unique(rest)) == len(rest)


@given(st.integers(1, 8), st.integers(1, 5), st.integers(0, 10_000))
def test_order_does_not_depend_on_ranks(ranks: int, per_rank: int, start: int) -> None:
    sampler = Sampler(Mixture({"a": 0.8, "b": 0.2}, changes={5_000: {"a": 0.5, "b": 0.5}}), [100, 33], seed=1)
    samples = np.arange(start, start + 4 * ranks * per_rank)
    whole = np.stack(sampler.locate(samples))
    blocks = [np.stack(sampler.locate(block)) for block in np.split(samples, 4 * ranks)]
    assert (np.concatenate(blocks, axis=1) == whole).all()
    strided = np.empty_like(whole)
    for rank in range(ranks):
        strided[:, rank::ranks] = np.stack(sampler.locate(samples[rank::ranks]))
    assert (strided == whole).all()


def test_golden_mixture() -> None:
    """Frozen, as the order itself is."""
    mixture = Mixture({"web": 0.6, "code": 0.3, "math": 0.1}, changes={12: {"web": 1, "math": 1}})
    found = Sampler(mixture, [7, 1_000, 3], seed=5).locate(np.arange(16))
    assert found.source.tolist() == [0, 0, 1, 0, 1, 0, 0, 1, 0, 2, 0, 0, 0, 2, 0, 2]
    assert found.chunk.tolist() == [1, 6, 177, 2, 709, 0, 4, 754, 5, 1, 3, 5, 4, 2, 0, 0]
    assert found.epoch.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0]


def test_unshuffled_is_sequential() -> None:
    found = Sampler(Mixture("data"), [4], shuffle=False).locate(np.arange(10))
    assert found.chunk.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert found.epoch.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_sources_of_one_size_are_shuffled_apart() -> None:
    found = Sampler(Mixture({"a": 1, "b": 1}), [1_000, 1_000]).locate(np.arange(2_000))
    assert (found.chunk[found.source == 0] == found.chunk[found.source == 1]).sum() < 10


def test_a_list_is_drawn_by_size() -> None:
    sampler = Sampler(Mixture(["a", Path("b")]), [300, 100])
    assert [progress.samples for progress in sampler.progress(400)] == [300, 100]
    assert [progress.epochs for progress in sampler.progress(200)] == [0.5, 0.5]


def test_a_list_stays_by_size_when_another_dataset_joins() -> None:
    mixture = Mixture(["a", "b"]).with_change(40, ["a", "b", "c"])
    assert mixture.weights([30, 10, 60]) == {0: (30, 10, 0), 40: (30, 10, 60)}


def test_state_survives_json() -> None:
    mixture = Mixture(["b", "a"], changes={100: {"c": 0.1, "a": 1 / 3}}).with_change(50, {"b": 1, "a": 0})
    again = Mixture.from_state(json.loads(json.dumps(mixture.state(), sort_keys=True)))
    assert again == mixture
    assert again.names == ("b", "a", "c")
    assert (
        repr(mixture)
        == "Mixture(['b', 'a'], changes={50: {'b': 1.0, 'a': 0.0}, 100: {'c': 0.1, 'a': 0.3333333333333333}})"
    )
    assert again != Mixture(["a", "b"])


@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ([0.8, 0.2], [4, 1]),
        ([0.1] * 3, [1, 1, 1]),
        ([1, 0.0001], [10_000, 1]),
        ([0.1234, 0.8765, 0.0001], [1234, 8765, 1]),
        ([1e308, 1e308], [1, 1]),
        ([0, 5, 0], [0, 1, 0]),
    ],
)
def test_weights_as_written(weights: list[float], counts: list[int]) -> None:
    assert quantise(weights) == counts


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=12))
def test_quantised_weights_are_near(weights: list[float]) -> None:
    counts = quantise(weights)
    assert sum(counts) <= MAX_PERIOD
    for weight, count in zip(weights, counts, strict=True):
        assert count > 0
        assert count / sum(counts) == pytest.approx(weight / math.fsum(weights), abs=1e-5)  # [1, 0.99999]: 2.5e-6 off


def test_a_weight_too_small_to_be_drawn() -> None:
    with pytest.raises(UsageError, match="the smallest is 1e-09 of the whole"):
        quantise([1, 1e-9])


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({"a": -1}, "weight -1 of 'a'"),
        ({"a": math.nan}, "weight nan of 'a'"),
        ({"a": math.inf}, "weight inf of 'a'"),
        ({"a": "much"}, "weight much of 'a'"),
        ({"a": 0, "b": 0.0}, "all weights are 0, of a, b"),
        ({}, "no dataset"),
        ([], "no dataset"),
        (["a", Path("a")], "dataset 'a' twice"),
    ],
)
def test_bad_mix(mix: Mix, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Mixture(mix)
    with pytest.raises(UsageError, match=message):
        Mixture("a").with_change(10, mix)


def test_change_at_the_start() -> None:
    with pytest.raises(UsageError, match="changed at sample 0"):
        Mixture("a", changes={0: "b"})


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="1 sizes for 2 datasets"):
        Sampler(Mixture(["a", "b"]), [1])
    with pytest.raises(UsageError, match="b holds 0 chunks"):
        Sampler(Mixture(["a", "b"]), [1, 0])


def test_sample_before_the_first() -> None:
    sampler = Sampler(Mixture("a"), [3])
    with pytest.raises(IndexError, match="sample -1"):
        sampler.locate(np.array([2, -1]))
    assert sampler.locate(np.zeros(0, np.int64)).chunk.tolist() == []
