"""Precision: clipping, the loss scale of fp16, and bad gradients that reach neither weights nor moments."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from conftest_training import ForbidHostSync, SmallModel, batch, flat_state, loss_of, small_model
from headrace.errors import UsageError
from headrace.training import precision
from headrace.training.optimizer import NAMES, build_optimizer
from headrace.training.precision import Precision, build_precision, default_precision

BAD = [float("nan"), float("inf"), float("-inf")]


def prepared(name: str, kept: Precision, steps: int = 2) -> tuple[SmallModel, torch.optim.Optimizer]:
    """A model after some good steps, with the gradients of one more."""
    model = small_model()
    optimizer = build_optimizer(model, name=name, lr=1e-2, device="cpu")
    for step in range(steps + 1):
        optimizer.zero_grad()
        kept.backward(loss_of(model, batch(step)))
        if step < steps:
            kept.clip_and_step(optimizer, model.parameters(), 1.0)
    return model, optimizer


def with_scaler(**kwargs: float) -> Precision:
    """fp16's path on a CPU: the loss scale is torch's own, only the device is another."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, **kwargs)  # type: ignore[arg-type]
    return Precision(dtype=torch.float16, device=torch.device("cpu"), scaler=scaler)


def moments(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """All but the host's count of steps in the 8-bit optimizer."""
    return {key: value for key, value in flat_state(optimizer).items() if isinstance(value, torch.Tensor)}


def assert_same(old: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> None:
    assert old.keys() == new.keys()
    for key, value in old.items():
        assert torch.equal(value.view(torch.uint8), new[key].view(torch.uint8)) if value.ndim else value == new[key], (
            key
        )


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", NAMES)
def test_bad_gradient_reaches_neither_weights_nor_moments(name: str, value: float) -> None:
    kept = build_precision("fp32", "cpu")
    model, optimizer = prepared(name, kept)
    weights, before = copy.deepcopy(model.state_dict()), moments(optimizer)
    assert model.up.weight.grad is not None
    model.up.weight.grad[3, 4] = value
    with ForbidHostSync():
        norm = kept.clip_and_step(optimizer, model.parameters(), 1.0)
    assert not math.isfinite(norm.item())
    assert_same(weights, model.state_dict())
    assert_same(before, moments(optimizer))


@pytest.mark.parametrize("name", NAMES)
def test_bad_first_step_leaves_moments_of_zero(name: str) -> None:
    kept = build_precision("fp32", "cpu")
    model, optimizer = prepared(name, kept, steps=0)
    weights = copy.deepcopy(model.state_dict())
    for p in model.parameters():
        p.grad = torch.full_like(p, float("nan"))
    kept.clip_and_step(optimizer, model.parameters(), None)
    assert_same(weights, model.state_dict())
    assert all(torch.isfinite(value).all() for value in moments(optimizer).values())


@pytest.mark.parametrize("name", NAMES)
def test_run_goes_on_after_a_bad_step_as_if_it_had_not_been(name: str) -> None:
    results = []
    for bad in (False, True):
        kept = build_precision("fp32", "cpu")
        model, optimizer = prepared(name, kept)
        if bad:
            good = [p.grad.clone() for p in model.parameters() if p.grad is not None]
            for p in model.parameters():
                p.grad = torch.full_like(p, float("nan"))
            kept.clip_and_step(optimizer, model.parameters(), 1.0)
            for p, grad in zip(model.parameters(), good, strict=True):
                p.grad = grad
        kept.clip_and_step(optimizer, model.parameters(), 1.0)
        results.append(copy.deepcopy(model.state_dict()))
    # The 8-bit optimizer counts the step that was left out, which moves its correction of the early moments.
    tolerance = 5e-3 if name == "adamw8bit" else 0.0
    for key, value in results[0].items():
        assert torch.allclose(value, results[1][key], rtol=0, atol=tolerance), key


@pytest.mark.parametrize("name", NAMES)
def test_guarded_step_is_the_plain_step(name: str) -> None:
    models = []
    for skip in (True, False):
        kept = build_precision("fp32", "cpu", skip_nonfinite=skip)
        model, optimizer = prepared(name, kept)
        kept.clip_and_step(optimizer, model.parameters(), 1.0)
        models.append(model.state_dict())
    assert_same(*models)


def test_without_skipping_a_bad_gradient_goes_through() -> None:
    kept = build_precision("fp32", "cpu", skip_nonfinite=False)
    model, optimizer = prepared("adamw", kept)
    assert model.up.weight.grad is not None
    model.up.weight.grad[0, 0] = float("nan")
    kept.clip_and_step(optimizer, model.parameters(), None)
    assert model.up.weight.isnan().any()


def test_device_whose_kernels_ignore_the_flag_skips_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "FUSED_DEVICES", ())
    kept = build_precision("fp32", "cpu")
    model, _ = prepared("adamw", kept)
    optimizer = torch.optim.AdamW(model.parameters(), fused=False)
    weights = copy.deepcopy(model.state_dict())
    good = model.up.weight.grad
    model.up.weight.grad = torch.full_like(model.up.weight, float("nan"))
    kept.clip_and_step(optimizer, [model.up.weight], None)
    assert_same(weights, model.state_dict())
    model.up.weight.grad = good
    kept.clip_and_step(optimizer, [model.up.weight], None)
    assert not torch.equal(weights["up.weight"], model.up.weight)


@pytest.mark.parametrize("name", NAMES)
def test_whole_step_never_asks_the_host(name: str) -> None:
    for kept in (build_precision("fp32", "cpu"), build_precision("bf16", "cpu"), with_scaler()):
        model, optimizer = prepared(name, kept)
        tokens = batch(7)
        with ForbidHostSync():
            optimizer.zero_grad()
            with kept.autocast():
                loss = loss_of(model, tokens)
            kept.backward(loss)
            norm = kept.clip_and_step(optimizer, model.parameters(), 1.0)
        assert math.isfinite(norm.item())


def test_norm_before_clipping_is_returned_and_gradients_are_cut() -> None:
    kept = build_precision("fp32", "cpu")
    weight = nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([weight], lr=1.0, fused=True)
    weight.grad = torch.tensor([3.0, 0.0, 4.0, 0.0])
    assert kept.clip_and_step(optimizer, [weight], 1.0).item() == 5.0
    assert torch.allclose(weight, torch.tensor([-0.6, 0.0, -0.8, 0.0]))
    weight.grad = torch.tensor([3.0, 0.0, 4.0, 0.0])
    assert kept.clip_and_step(optimizer, [weight], None).item() == 5.0
    assert torch.allclose(weight, torch.tensor([-3.6, 0.0, -4.8, 0.0]))


@pytest.mark.parametrize("name", NAMES)
def test_loss_scale_does_not_change_the_step(name: str) -> None:
    """Powers of two scale and unscale exactly; clipping sees gradients of their own size."""
    models, norms = [], []
    for kept in (build_precision("fp32", "cpu"), with_scaler()):
        model, optimizer = prepared(name, kept)
        norms.append(kept.clip_and_step(optimizer, model.parameters(), 1.0).item())
        models.append(model.state_dict())
    assert norms[0] == pytest.approx(norms[1])
    for key, value in models[0].items():
        assert torch.allclose(value, models[1][key], atol=1e-6), key


def test_loss_scale_halves_after_overflow_and_the_step_is_left_out() -> None:
    kept = with_scaler()
    model, optimizer = prepared("adamw", kept)
    weights, before = copy.deepcopy(model.state_dict()), moments(optimizer)
    model.up.weight.grad = torch.full_like(model.up.weight, float("inf"))
    kept.clip_and_step(optimizer, model.parameters(), 1.0)
    assert kept.state_dict()["scale"] == 512.0
    assert_same(weights, model.state_dict())
    assert_same(before, moments(optimizer))


def test_loss_scale_grows_and_is_saved() -> None:
    kept = with_scaler(growth_interval=1)
    prepared("adamw", kept, steps=2)
    assert kept.state_dict()["scale"] == 4096.0
    resumed = with_scaler()
    resumed.load_state_dict(kept.state_dict())
    assert resumed.state_dict() == kept.state_dict()
    assert build_precision("fp32", "cpu").state_dict() == {}


def test_bf16_runs_matrices_in_bf16_and_says_what_to_expect() -> None:
    lines: list[str] = []
    kept = build_precision("bf16", "cpu", report=lines.append)
    model = small_model()
    with kept.autocast():
        assert model(batch()).dtype is torch.bfloat16
    assert model.up.weight.dtype is torch.float32
    assert len(lines) == 1
    assert "slower" in lines[0]


def test_fp32_casts_nothing_and_says_nothing() -> None:
    lines: list[str] = []
    with build_precision("fp32", "cpu", report=lines.append).autocast():
        assert small_model()(batch()).dtype is torch.float32
    assert lines == []


@pytest.mark.parametrize("capability", [(7, 5), (8, 0)])
def test_gpu_without_bf16(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    if capability >= (8, 0):
        assert default_precision("cuda") == "bf16"
        assert build_precision("bf16", "cuda").dtype is torch.bfloat16
    else:
        assert default_precision("cuda") == "fp32"
        with pytest.raises(UsageError, match=r"no bf16 arithmetic\. Use --mixed-precision fp16"):
            build_precision("bf16", "cuda")


def test_defaults_and_refusals() -> None:
    assert default_precision("cpu") == "fp32"
    with pytest.raises(UsageError, match="fp16 needs a CUDA device and this run is on cpu"):
        build_precision("fp16", "cpu")
    with pytest.raises(UsageError, match="'int8' is not one of fp32, bf16, fp16"):
        build_precision("int8", "cpu")
