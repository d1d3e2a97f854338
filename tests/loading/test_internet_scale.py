"""Order and state at 10^13 tokens and beyond: every number stays exact, whatever position a run stands at."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.loading.mixture import Mixture
from headrace.loading.order import invert, permute
from headrace.loading.sampler import Sampler

TOKENS = 10**13
LENGTHS = (1, 512, 2_048, 8_192, 131_072)  # tokens of a sequence; 1 makes the most chunks there can be
seeds = st.integers(0, 2**64 - 1)
# A mixture of 15 trillion tokens: web, code, mathematics and books, in chunks of 2,048.
SIZES = [12_000_000_000_000 // 2_048, 2_000_000_000_000 // 2_048, 700_000_000_000 // 2_048, 300_000_000_000 // 2_048]
WEIGHTS = {"web": 0.62, "code": 0.23, "math": 0.1, "books": 0.05}
BATCH = 2_048  # sequences: 4 million tokens a step
STEP = 10**9


def sampler(seed: int = 0, mixture: Mixture | None = None) -> Sampler:
    return Sampler(mixture or Mixture(WEIGHTS), SIZES, seed=seed)


@pytest.mark.parametrize("length", LENGTHS)
@settings(max_examples=40, deadline=None)
@given(seed=seeds, epoch=st.integers(0, 10**6), data=st.data())
def test_the_shuffle_of_ten_trillion_tokens_is_a_bijection(
    length: int, seed: int, epoch: int, data: st.DataObject
) -> None:
    n = TOKENS // length
    some = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=200, unique=True))
    positions = np.unique(np.array([0, 1, n // 2, n - 2, n - 1, *some], np.int64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow of a numpy scalar warns
        chunks = permute(positions, n, seed=seed, epoch=epoch)
        back = invert(chunks, n, seed=seed, epoch=epoch)
    assert chunks.dtype == np.int64
    assert chunks.min() >= 0
    assert chunks.max() < n
    assert len(np.unique(chunks)) == len(positions)
    assert (back == positions).all()


@pytest.mark.parametrize("length", LENGTHS)
def test_a_stretch_of_the_shuffle_is_spread_over_all_of_it(length: int) -> None:
    n = TOKENS // length
    chunks = permute(np.arange(n - 50_000, n), n, seed=1, epoch=3)
    counts = np.histogram(chunks, bins=50, range=(0, n))[0]
    assert abs(counts - 1_000).max() < 6 * np.sqrt(1_000)


def test_the_last_token_of_the_last_chunk_has_a_number() -> None:
    """Chunk times length, and that times the bytes of a token, are int64 in the gatherer."""
    for length in LENGTHS:
        n = TOKENS // length
        last = permute(invert(np.array([n - 1]), n, seed=0, epoch=0), n, seed=0, epoch=0) * length + length
        assert last.dtype == np.int64
        assert int(last[0]) == n * length
        assert int(last[0]) * 4 < 2**63


@settings(max_examples=40, deadline=None)
@given(seed=seeds, step=st.integers(0, STEP))
def test_any_position_of_a_run_is_found_without_those_before_it(seed: int, step: int) -> None:
    """What a run reads that goes on at a step is what one reads that came there, batch by batch or all at once."""
    samples = np.arange(step * BATCH, step * BATCH + 64)
    together = sampler(seed).locate(samples)
    again = sampler(seed)
    for number, sample in enumerate(samples.tolist()):
        one = again.locate(np.array([sample]))
        assert [int(column[0]) for column in one] == [int(column[number]) for column in together]


@settings(max_examples=60, deadline=None)
@given(step=st.integers(0, STEP), changed=st.integers(1, STEP))
def test_the_mixture_is_exact_to_one_sample_at_step_a_billion(step: int, changed: int) -> None:
    counts = {"web": 62, "code": 23, "math": 10, "books": 5}
    for at in (step, STEP):
        for progress in sampler().progress(at * BATCH):
            assert abs(progress.samples * 100 - at * BATCH * counts[progress.name]) < 100
    moved = Mixture(WEIGHTS, changes={changed * BATCH: dict.fromkeys(WEIGHTS, 0.25)})
    taken = [progress.samples for progress in sampler(mixture=moved).progress(STEP * BATCH)]
    assert sum(taken) == STEP * BATCH
    for name, samples in zip(WEIGHTS, taken, strict=True):
        exact = changed * BATCH * counts[name] + (STEP - changed) * BATCH * 25  # in hundredths, whole numbers
        assert abs(samples * 100 - exact) < 200


@settings(max_examples=40, deadline=None)
@given(start=st.integers(0, STEP * BATCH), seed=seeds)
def test_every_source_goes_on_where_it_was_and_repeats_nothing_within_an_epoch(start: int, seed: int) -> None:
    whole = sampler(seed)
    source, chunk, epoch = whole.locate(np.arange(start, start + 500))
    before = [progress.samples for progress in whole.progress(start)]
    for index, size in enumerate(SIZES):
        mine = np.flatnonzero(source == index)
        numbers = [before[index] + k for k in range(len(mine))]
        assert epoch[mine].tolist() == [number // size for number in numbers]
        assert chunk[mine].min() >= 0
        assert chunk[mine].max() < size
        pairs = set(zip(epoch[mine].tolist(), chunk[mine].tolist(), strict=True))
        assert len(pairs) == len(mine)


@given(step=st.integers(0, 2**53))
def test_the_state_of_a_run_is_a_few_exact_integers(step: int) -> None:
    mixture = Mixture(WEIGHTS, changes={step + 1: {"web": 1.0, "math": 1.0}})
    state = json.loads(json.dumps({"step": step, "mixture": mixture.state()}))
    assert state["step"] == step
    assert Mixture.from_state(state["mixture"]) == mixture
    assert len(json.dumps(state)) < 500
