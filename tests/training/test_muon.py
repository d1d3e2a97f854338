"""Muon: orthogonal updates of the size of AdamW's, equal to torch's own where both exist."""

from __future__ import annotations

import copy

import pytest
import torch

from conftest_training import batch, loss_of, small_model
from headrace.errors import UsageError
from headrace.training import muon
from headrace.training.muon import Muon, orthogonalise
from headrace.training.optimizer import build_optimizer, sort_parameters


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 64, 16), (3, 16, 64), (2, 1, 8)])
def test_singular_values_come_near_1(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(shape, generator=generator)))
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_directions_stay() -> None:
    """The result is close to U V^T of the singular value decomposition."""
    matrix = torch.randn(24, 40, generator=torch.Generator().manual_seed(1))
    u, _, vh = torch.linalg.svd(matrix, full_matrices=False)
    ours = orthogonalise(matrix[None])[0]
    assert torch.nn.functional.cosine_similarity(ours.flatten(), (u @ vh).flatten(), dim=0) > 0.97


def test_gradient_of_zeros_gives_zeros() -> None:
    assert torch.equal(orthogonalise(torch.zeros(2, 4, 8)), torch.zeros(2, 4, 8))


@pytest.mark.parametrize("shape", [(128, 128), (512, 128), (128, 512)])
def test_update_is_as_large_as_adamws(shape: tuple[int, int]) -> None:
    p = torch.nn.Parameter(torch.zeros(shape))
    p.grad = torch.randn(shape, generator=torch.Generator().manual_seed(2)) * 1e-3
    one(p, lr=1.0).step()
    rms = p.detach().square().mean().sqrt().item()
    assert 0.15 < rms < 0.25


def one(p: torch.nn.Parameter, *, lr: float) -> Muon:
    groups = [{"params": [p], "orthogonal": True}, {"params": []}]
    return Muon(groups, lr=lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch.optim.Muon came with torch 2.9")
def test_equals_torchs_but_for_its_bf16() -> None:
    generator = torch.Generator().manual_seed(3)
    ours = torch.nn.Parameter(torch.randn(48, 96, generator=generator))
    theirs = torch.nn.Parameter(ours.detach().clone())
    mine = one(ours, lr=0.02)
    other = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for _ in range(5):
        ours.grad = torch.randn(48, 96, generator=generator)
        theirs.grad = ours.grad.clone()
        mine.step()
        other.step()
    assert torch.allclose(ours, theirs, atol=5e-3)  # five updates of about 0.004 each in every element


def test_rest_gets_the_very_steps_of_adamw() -> None:
    model, other = small_model(), small_model()
    mine = build_optimizer(model, name="muon", lr=1e-2, device="cpu")
    adamw = build_optimizer(other, name="adamw", lr=1e-2, device="cpu")
    for m, optimizer in ((model, mine), (other, adamw)):
        loss_of(m, batch()).backward()
        optimizer.step()
    kinds, theirs = sort_parameters(model), sort_parameters(other)
    for kind in ("other", "embeddings", "vectors"):
        pairs = zip(getattr(kinds, kind), getattr(theirs, kind), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(model.up.weight, other.up.weight)


def test_stacking_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stepped(limit: int) -> list[torch.Tensor]:
        monkeypatch.setattr(muon, "STACKED_ELEMENTS", limit)
        generator = torch.Generator().manual_seed(4)
        params = [torch.nn.Parameter(torch.randn(8, 12, generator=generator)) for _ in range(5)]
        for p in params:
            p.grad = torch.randn(8, 12, generator=generator)
        groups = [{"params": params, "orthogonal": True}, {"params": []}]
        Muon(groups, lr=0.1, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True).step()
        return params

    for together, apart in zip(stepped(1 << 20), stepped(2 * 96), strict=True):
        assert torch.allclose(together, apart, atol=1e-6)


def test_parameter_without_gradient_stays() -> None:
    model = small_model()
    optimizer = build_optimizer(model, name="muon", lr=1e-2, device="cpu")
    loss_of(model, batch()).backward()
    model.out.weight.grad = None
    before = copy.deepcopy(model.out.weight)
    optimizer.step()
    assert torch.equal(model.out.weight, before)


def test_closure_is_evaluated() -> None:
    model = small_model()
    optimizer = build_optimizer(model, name="muon", lr=1e-2, device="cpu")

    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        loss.backward()
        return loss.item()

    first = optimizer.step(closure)
    second = optimizer.step(closure)
    assert first is not None
    assert second is not None
    assert second < first


def test_model_without_matrices() -> None:
    with pytest.raises(UsageError, match="Muon needs hidden matrices"):
        build_optimizer(torch.nn.LayerNorm(8), name="muon", lr=1e-2, device="cpu")
