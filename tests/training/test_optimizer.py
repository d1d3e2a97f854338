"""Optimizers: who decays, that each of them learns, goes on from its saved state and never asks the host."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import bitsandbytes.optim.optimizer
import pytest
import torch
from torch import nn

from conftest_training import ForbidHostSync, SmallModel, batch, flat_state, loss_of, small_model
from headrace.errors import MissingDependency, UsageError
from headrace.models import build_model
from headrace.training.optimizer import NAMES, build_optimizer, set_learning_rate, sort_parameters

RATE = 1e-2


def build(model: nn.Module, name: str, **kwargs: float) -> torch.optim.Optimizer:
    return build_optimizer(model, name=name, lr=RATE, device="cpu", **kwargs)  # type: ignore[arg-type]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> list[float]:
    losses = []
    for step in steps:
        optimizer.zero_grad()
        loss = loss_of(model, batch(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def names(model: nn.Module, params: list[nn.Parameter]) -> set[str]:
    known = {id(p): name for name, p in model.named_parameters()}
    return {known[id(p)] for p in params}


def test_kinds_of_parameters() -> None:
    model = small_model()
    kinds = sort_parameters(model)
    assert names(model, kinds.hidden) == {"attention.weight", "out.weight", "up.weight", "down.weight"}
    assert names(model, kinds.other) == {"head.weight"}
    assert names(model, kinds.embeddings) == {"embedding.weight"}
    assert names(model, kinds.vectors) == {"norm.weight", "norm.bias", "up.bias", "down.bias"}


def test_tied_head_is_an_embedding() -> None:
    model = small_model(tied=True)
    kinds = sort_parameters(model)
    assert names(model, kinds.embeddings) == {"embedding.weight"}
    assert kinds.other == []


def test_hidden_matrix_of_the_embeddings_shape_is_no_head() -> None:
    model = SmallModel(vocabulary=32, width=32)
    assert model.out.weight.shape == model.embedding.weight.shape
    assert names(model, sort_parameters(model).other) == {"head.weight"}
    tied = SmallModel(vocabulary=32, width=32, tied=True)
    assert "out.weight" in names(tied, sort_parameters(tied).hidden)


@pytest.mark.parametrize("tied", [True, False])
def test_real_transformer(tied: bool) -> None:
    """A feed-forward layer of its nano size has 512 rows of 128, which is the embedding's shape here."""
    model = build_model("transformer", size="nano", vocab_size=512, tied=tied)
    kinds = sort_parameters(model)
    assert names(model, kinds.embeddings) == {"embedding.weight"}
    assert names(model, kinds.other) == (set() if tied else {"head.weight"})
    assert "blocks.3.ffn.up.weight" in names(model, kinds.hidden)
    assert {"norm.weight", "blocks.0.ffn_norm.weight"} <= names(model, kinds.vectors)


def test_frozen_parameters_are_left_out() -> None:
    model = small_model()
    model.up.requires_grad_(False)
    kinds = sort_parameters(model)
    assert not names(model, [*kinds.hidden, *kinds.vectors]) & {"up.weight", "up.bias"}


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_in_one_group(name: str) -> None:
    model = small_model()
    held = [p for group in build(model, name).param_groups for p in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, model.parameters()))


@pytest.mark.parametrize("name", NAMES)
def test_only_matrices_decay(name: str) -> None:
    """With gradients of 0 a step is decay and nothing else."""
    model = small_model()
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(1.0)
            p.grad = torch.zeros_like(p)
    build(model, name, weight_decay=0.5).step()
    decayed = {key for key, p in model.named_parameters() if not torch.equal(p, torch.ones_like(p))}
    assert decayed == {"attention.weight", "out.weight", "up.weight", "down.weight", "head.weight"}
    assert model.out.weight[0, 0].item() == pytest.approx(1 - RATE * 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_learns(name: str) -> None:
    model = small_model()
    losses = train(model, build(model, name), range(30))
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_saved_state_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = small_model()
    optimizer = build(model, name)
    train(model, optimizer, range(3))
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    other = copy.deepcopy(model)
    resumed = build(other, name)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert train(other, resumed, range(3, 6)) == train(model, optimizer, range(3, 6))
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_rate_is_set_for_all_parameters(name: str) -> None:
    model = small_model()
    optimizer = build(model, name)
    set_learning_rate(optimizer, 0.0)
    before = copy.deepcopy(model.state_dict())
    train(model, optimizer, range(2))
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", NAMES)
def test_step_never_asks_the_host(name: str) -> None:
    model = small_model()
    optimizer = build(model, name)
    train(model, optimizer, range(1))
    before = model.up.weight.clone()
    with ForbidHostSync():
        set_learning_rate(optimizer, 1e-3)
        optimizer.step()
        optimizer.zero_grad()
    assert not torch.equal(before, model.up.weight)


def test_guard_notices_a_host_read() -> None:
    """torch's uncompiled loop reads its step count, so it is a real case of what the guard is for."""
    model = small_model()
    loss_of(model, batch()).backward()
    loop = torch.optim.AdamW(model.parameters(), foreach=False, fused=False)
    with pytest.raises(AssertionError, match="makes the host wait"), ForbidHostSync():
        loop.step()


def test_adamw_is_fused() -> None:
    assert all(group["fused"] for group in build(small_model(), "adamw").param_groups)


def test_8bit_moments_are_8_bit_except_for_embeddings_and_small_ones() -> None:
    model = small_model(vocabulary=512)
    optimizer = build(model, "adamw8bit")
    optimizer.zero_grad()
    loss_of(model, batch(vocabulary=512)).backward()
    optimizer.step()
    kept = {key: optimizer.state[p]["state1"].dtype for key, p in model.named_parameters()}
    assert model.embedding.weight.numel() == model.head.weight.numel() == 512 * 32
    assert kept["head.weight"] == kept["up.weight"] == torch.uint8
    assert kept["embedding.weight"] == kept["norm.weight"] == torch.float32


def test_8bit_does_not_synchronise_after_each_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    def synchronised(tensor: torch.Tensor) -> None:
        raise AssertionError("the package's own step waits for the GPU here")

    monkeypatch.setattr(bitsandbytes.optim.optimizer, "sync_gpu", synchronised)
    model = small_model()
    train(model, build(model, "adamw8bit"), range(2))
    theirs = bitsandbytes.optim.AdamW8bit(model.parameters())
    with pytest.raises(AssertionError, match="waits for the GPU"):
        train(model, theirs, range(1))


def test_8bit_steps_like_the_package_does() -> None:
    """Leaving its waits out changes no number."""
    model, other = small_model(), small_model()
    ours = build(model, "adamw8bit", weight_decay=0.0)
    for group in ours.param_groups:
        group.pop("optim_bits", None)
    theirs = bitsandbytes.optim.AdamW8bit(other.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.0)
    assert train(model, ours, range(4)) == train(other, theirs, range(4))


def test_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    monkeypatch.delitem(sys.modules, "headrace.training.adamw8bit", raising=False)
    with pytest.raises(MissingDependency, match=r"'bitsandbytes'.*pip install 'headrace\[8bit\]'"):
        build(small_model(), "adamw8bit")


def test_unknown_name() -> None:
    with pytest.raises(UsageError, match="'sgd' is not one of adamw, adamw8bit, muon"):
        build(small_model(), "sgd")


def test_state_of_a_resumed_optimizer_equals_the_saved_one() -> None:
    for name in NAMES:
        model = small_model()
        optimizer = build(model, name)
        train(model, optimizer, range(2))
        resumed = build(model, name)
        resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        ours, theirs = flat_state(optimizer), flat_state(resumed)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(torch.as_tensor(ours[key]), torch.as_tensor(theirs[key])) for key in ours)
