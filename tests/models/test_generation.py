"""Sampling: greedy, seeded, cut to the likeliest, and stopped."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from headrace.errors import UsageError
from headrace.models import build_model
from headrace.models.generation import LOOK_EVERY, _Sampler
from headrace.models.transformer import Transformer

VOCAB = 50


@pytest.fixture(scope="module")
def model() -> Transformer:
    options = {"width": 32, "heads": 2, "layers": 1, "ffn": 64, "context": 128}
    return build_model("transformer", "nano", vocab_size=VOCAB, seed=3, **options)


def prompt(rows: int = 2, length: int = 5) -> Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(1))


def test_greedy_is_the_likeliest_of_the_uncached_logits(model: Transformer) -> None:
    ids = prompt()
    for _ in range(12):
        ids = torch.cat([ids, model.logits(ids)[:, -1:].argmax(-1)], 1)
    assert torch.equal(model.generate(prompt(), 12, temperature=0), ids)
    assert torch.equal(model.generate(prompt(), 12, top_k=1), ids)
    assert torch.equal(model.generate(prompt(), 12, top_p=1e-6), ids)


def test_seed_decides(model: Transformer) -> None:
    first = model.generate(prompt(), 20, seed=1)
    assert torch.equal(first, model.generate(prompt(), 20, seed=1))
    assert not torch.equal(first, model.generate(prompt(), 20, seed=2))
    torch.manual_seed(5)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    model.generate(prompt(), 20, seed=1)
    assert torch.equal(torch.rand(1), drawn)  # a seeded sample leaves the random numbers of a run alone


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [0.5, 0.3, 0.15, 0.05]),
        ({"temperature": 2.0}, [0.379, 0.293, 0.207, 0.120]),
        ({"top_k": 2}, [0.625, 0.375, 0, 0]),
        ({"top_k": 99}, [0.5, 0.3, 0.15, 0.05]),
        ({"top_p": 0.49}, [1.0, 0, 0, 0]),
        ({"top_p": 0.6}, [0.625, 0.375, 0, 0]),
        ({"top_p": 1.0}, [0.5, 0.3, 0.15, 0.05]),
        ({"top_k": 3, "top_p": 0.9}, [0.526, 0.316, 0.158, 0]),
    ],
)
def test_sampled_shares(options: dict[str, Any], wanted: list[float]) -> None:
    order = [2, 0, 3, 1]  # not sorted, so that what is cut off must be put back in its place
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05])[order].log().expand(20_000, 4)
    given = {"temperature": 1.0, "top_k": None, "top_p": None, **options}
    chosen = _Sampler(**given, seed=0, device=torch.device("cpu")).choose(logits)
    shares = torch.bincount(chosen, minlength=4) / 20_000
    torch.testing.assert_close(shares, torch.tensor(wanted)[order], rtol=0, atol=0.015)
    assert ((shares == 0) == (torch.tensor(wanted)[order] == 0)).all()


def test_stops_where_the_stop_id_first_is(model: Transformer) -> None:
    free = model.generate(prompt(), 100, seed=1)
    stop = int(free[0, 9])
    found = model.generate(prompt(), 100, seed=1, stop_ids=[stop])
    ends = []
    for row, whole in zip(found, free, strict=True):
        end = next((i for i in range(5, 105) if whole[i] == stop), 104)
        ends.append(end)
        assert torch.equal(row[: end + 1], whole[: min(end + 1, found.shape[1])])
        assert (row[end:] == stop).all() or end == 104
    assert found.shape[1] == max(ends) + 1
    assert min(ends) <= 9


@pytest.mark.parametrize("new", [1, LOOK_EVERY - 1, LOOK_EVERY, LOOK_EVERY + 1, 80])
def test_all_stopped_at_once_is_short(model: Transformer, new: int) -> None:
    found = model.generate(prompt(), new, stop_ids=list(range(VOCAB)))
    assert found.shape == (2, 6)


def test_never_stopped_is_whole(model: Transformer) -> None:
    assert model.generate(prompt(), 40, stop_ids=[VOCAB + 1], seed=0).shape == (2, 45)
    assert torch.equal(model.generate(prompt(), 0, stop_ids=[1]), prompt())


def test_shapes_mode_and_gradients(model: Transformer) -> None:
    model.train()
    found = model.generate([1, 2, 3], 4)
    assert found.shape == (1, 7)
    assert found[0, :3].tolist() == [1, 2, 3]
    assert model.training
    assert not found.is_inference()  # could be trained on
    assert model.generate([[1, 2], [3, 4]], 1).shape == (2, 3)


@pytest.mark.parametrize(
    ("ids", "options", "words"),
    [
        ([], {}, "at least one token"),
        ([[1, 2], [3]], {}, "rows of equal length"),
        ([1], {"max_new_tokens": -1}, "max_new_tokens -1"),
        ([1], {"temperature": -0.5}, "temperature -0.5"),
        ([1], {"top_k": 0}, "top_k 0"),
        ([1], {"top_p": 0.0}, r"top_p 0\.0"),
        ([1], {"top_p": 1.5}, r"top_p 1\.5"),
    ],
)
def test_bad_request(model: Transformer, ids: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        model.generate(ids, **{"max_new_tokens": 3, **options})
