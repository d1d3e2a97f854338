"""TEN: eigenvalues inside the unit circle, a state that does not grow, and that it learns what attention would."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from headrace.errors import UsageError
from headrace.models import build_model
from headrace.models.eigenstates import LEAST
from headrace.models.ten import TEN, Eigenvalues

PUBLISHED: dict[str, Any] = {"published": True, "selective": False, "taps": 0, "gated": False}
WITHOUT: list[dict[str, Any]] = [{"taps": 0}, {"gated": False}, {"selective": False}, PUBLISHED, {"taps": 1}]


def small(**options: Any) -> TEN:
    settings = {"width": 32, "layers": 2, "heads": 2, "states": 8, "ffn": 48, "context": 256, **options}
    model: TEN = build_model("ten", "nano", vocab_size=61, **settings)
    return model


def tokens(rows: int, length: int, top: int = 61, seed: int = 0) -> Tensor:
    return torch.randint(top, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("options", WITHOUT, ids=str)
def test_every_part_can_be_left_out(options: dict[str, Any]) -> None:
    """And then generation, documents and gradients are still right."""
    model, ids = small(**options), tokens(2, 131)
    model(ids[:, :-1], ids[:, 1:]).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())
    with torch.no_grad():
        whole, cache = model.logits(ids), model.new_cache(2, 131)
        parts = [model.logits(ids[:, begin:end], cache=cache) for begin, end in ((0, 1), (1, 70), (70, 72), (72, 131))]
        torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-4, rtol=1e-4)
        doc_ids = (torch.arange(131) >= 50).long().expand(2, -1)
        packed = model.logits(ids, doc_ids=doc_ids)
        torch.testing.assert_close(packed[:, 50:], model.logits(ids[:, 50:]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("method", ["sequential", "chunked"])
def test_the_method_changes_nothing(method: str) -> None:
    ids = tokens(2, 100)
    losses, gradients = [], []
    for model in (small(), small(method=method)):
        loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        losses.append(loss.detach())
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    torch.testing.assert_close(losses[0], losses[1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-4, rtol=1e-3)


def test_fft_with_fixed_eigenvalues() -> None:
    ids = tokens(2, 100)
    by_fft, by_chunks = (small(selective=False, method=method)(ids) for method in ("fft", "chunked"))
    torch.testing.assert_close(by_fft, by_chunks, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("extreme", [-100.0, -20.0, 0.0, 20.0, 100.0])
def test_eigenvalues_never_leave_the_unit_circle(extreme: float) -> None:
    """Whatever the parameters become, and without a gradient that is no number."""
    model = small()
    eigenvalues = model.blocks[0].mixer.eigenvalues
    assert isinstance(eigenvalues, Eigenvalues)
    with torch.no_grad():
        eigenvalues.log_rate[::2] = extreme
        eigenvalues.pace.bias.fill_(-extreme)
    log_decay, _ = eigenvalues(torch.randn(1, 5, 32))
    assert float(log_decay.detach().max()) <= 0
    assert float(log_decay.detach().min()) >= LEAST
    ids = tokens(1, 70)
    model(ids[:, :-1], ids[:, 1:]).backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_half_lives_span_the_context() -> None:
    eigenvalues = small(states=32).blocks[0].mixer.eigenvalues
    half_lives = torch.log(torch.tensor(2.0)) / eigenvalues.log_rate.detach().exp()
    assert 1 <= float(half_lives.min()) < 1.3
    assert 256 < float(half_lives.max()) < 2 * 256
    by_octave = torch.histc(half_lives.log2(), bins=9, min=0, max=9)
    assert by_octave.min() >= 4, by_octave  # of 64, spread over nine octaves


def test_the_cache_does_not_grow() -> None:
    model = small()
    cache = model.new_cache(1, 1000)
    sizes = []
    with torch.no_grad():
        for length in (3, 200, 1, 1, 400):
            model.hidden(tokens(1, length), cache=cache)
            sizes.append(sum(x.numel() for memory in cache for x in (memory.state, memory.tail) if x is not None))
            held = [x for memory in cache for x in (memory.state, memory.tail) if x is not None]
            assert all(x.untyped_storage().nbytes() == x.numel() * x.element_size() for x in held)
    assert len(set(sizes)) == 1


def test_rows_may_be_longer_than_the_context() -> None:
    assert small(context=64).generate([1, 2, 3], 100, temperature=0).shape == (1, 103)


def test_documents_with_a_cache() -> None:
    model = small()
    with pytest.raises(UsageError, match="not in generation"):
        model.hidden(tokens(1, 5), doc_ids=torch.zeros(1, 5), cache=model.new_cache(1, 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 33}, "width 33 with 2 heads"),
        ({"states": 0}, "states 0: it must be at least 1"),
        ({"taps": -1}, "taps -1: it must be at least 0"),
        ({"method": "magic"}, "method 'magic': it must be one of"),
        ({"method": "fft"}, "fft only with selective=False"),
    ],
)
def test_config_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        small(**options)


def test_flops_count_the_chunks() -> None:
    model = small()
    by_weights = 6.0 * (model.parameter_count(embeddings=False) + model.output_weight.numel())
    chunk = 64 * (16 + 16) + 2 * 16 * 16
    assert model.flops_per_token(1024) == by_weights + 6.0 * 2 * 2 * chunk
    assert model.flops_per_token(1024) == model.flops_per_token(16_384)


def test_learns_to_recall_over_a_hundred_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four keys and their values, a hundred tokens of noise, then the keys again: chance is one in eight."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    recall = importlib.import_module("recall")
    torch.set_num_threads(1)
    settings: dict[str, Any] = {"width": 64, "layers": 2, "heads": 2, "states": 16, "ffn": 128, "context": 1024}
    model: TEN = build_model("ten", "nano", vocab_size=3 * 8, **settings)
    goal = recall.Stage(pairs=4, length=128)
    reached = recall.train(model, goal, steps=600, tokens=1024, lr=5e-3, seed=0, kinds=8)
    assert [stage["length"] for stage in reached] == [16, 32, 64, 128]
    assert recall.accuracy(model, recall.Rows(9, 8), 64, goal) > 0.9
