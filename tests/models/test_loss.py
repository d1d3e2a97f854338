"""Cross-entropy in chunks is cross-entropy: same value, same gradients, and never all logits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headrace.models import loss
from headrace.models.loss import chunked_cross_entropy, evaluate_cross_entropy, rows_in_chunk

N, V, D = 50, 37, 16


def inputs(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(N, D, generator=generator).to(dtype).requires_grad_()
    weight = torch.randn(V, D, generator=generator).to(dtype).requires_grad_()
    return hidden, weight, torch.randint(V, (N,), generator=generator)


def plain(hidden: Tensor, weight: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    wanted = targets if mask is None else targets.masked_fill(~mask, -100)
    return F.cross_entropy(F.linear(hidden, weight), wanted)


def with_gradients(loss: Tensor, *leaves: Tensor) -> list[Tensor]:
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


@pytest.mark.parametrize("rows", [1, 7, 25, 49, 50, 51, None])
@pytest.mark.parametrize("masked", [False, True])
def test_value_and_gradients_are_those_of_cross_entropy(rows: int | None, masked: bool) -> None:
    hidden, weight, targets = inputs()
    mask = torch.arange(N) % 3 > 0 if masked else None
    ours = with_gradients(chunked_cross_entropy(hidden, weight, targets, mask, rows=rows), hidden, weight)
    theirs = with_gradients(plain(hidden, weight, targets, mask), hidden, weight)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_under_autocast(dtype: torch.dtype) -> None:
    hidden, weight, targets = inputs(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = with_gradients(chunked_cross_entropy(hidden, weight, targets, rows=16), hidden, weight)
        theirs = with_gradients(plain(hidden, weight, targets), hidden, weight)
    assert [x.dtype for x in ours] == [torch.float32, dtype, dtype]
    torch.testing.assert_close(ours[0], theirs[0].float(), rtol=1e-5, atol=1e-5)  # the same bfloat16 logits
    torch.testing.assert_close(ours[1:], theirs[1:], rtol=0.02, atol=1e-3)


def test_gradients_scale_with_what_follows() -> None:
    """As under gradient accumulation, where the loss of a micro-batch is divided by their number."""
    hidden, weight, targets = inputs()
    for _ in range(2):
        (chunked_cross_entropy(hidden, weight, targets, rows=16) / 4).backward()
    wanted = with_gradients(plain(hidden, weight, targets) / 2, hidden, weight)
    torch.testing.assert_close([hidden.grad, weight.grad], wanted[1:], rtol=1e-5, atol=1e-6)


def test_backward_twice_gives_the_same() -> None:
    hidden, weight, targets = inputs()
    loss = chunked_cross_entropy(hidden, weight, targets) * 3
    first = torch.autograd.grad(loss, [hidden, weight], retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, [hidden, weight]), first, rtol=0, atol=0)


@pytest.mark.parametrize("frozen", [0, 1])
def test_what_is_frozen_gets_no_gradient(frozen: int) -> None:
    hidden, weight, targets = inputs()
    parts = [hidden, weight]
    parts[frozen].requires_grad_(False)
    chunked_cross_entropy(hidden, weight, targets, rows=16).backward()
    assert parts[frozen].grad is None
    wanted = torch.autograd.grad(plain(hidden, weight, targets), parts[1 - frozen])[0]
    torch.testing.assert_close(parts[1 - frozen].grad, wanted, rtol=1e-5, atol=1e-6)


def test_negative_targets_do_not_count() -> None:
    hidden, weight, targets = inputs()
    targets[::4] = -100
    ours = with_gradients(chunked_cross_entropy(hidden, weight, targets, rows=16), hidden, weight)
    torch.testing.assert_close(
        ours, with_gradients(plain(hidden, weight, targets), hidden, weight), rtol=1e-5, atol=1e-6
    )


def test_no_target_at_all_is_zero_and_not_nan() -> None:
    hidden, weight, targets = inputs()
    found = with_gradients(
        chunked_cross_entropy(hidden, weight, targets, torch.zeros(N, dtype=torch.bool)), hidden, weight
    )
    assert all((part == 0).all() for part in found)


def test_rows_and_columns_and_narrow_ids() -> None:
    hidden, weight, targets = inputs()
    ours = chunked_cross_entropy(hidden.view(5, 10, D), weight, targets.view(5, 10).int())
    torch.testing.assert_close(ours, plain(hidden, weight, targets))


def test_evaluation() -> None:
    hidden, weight, targets = inputs()
    mask = torch.arange(N) % 2 == 0
    found = evaluate_cross_entropy(hidden, weight, targets, mask, rows=16)
    logits = F.linear(hidden, weight)
    assert found.count == 25
    assert found.correct == (logits.argmax(1) == targets)[mask].sum()
    torch.testing.assert_close(found.loss_sum, F.cross_entropy(logits, targets, reduction="none")[mask].sum())
    with torch.no_grad():
        alone = chunked_cross_entropy(hidden, weight, targets, mask, rows=16)
    torch.testing.assert_close(alone, found.loss_sum / 25)


class Largest(TorchDispatchMode):
    """The size of the largest tensor that any operation made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        self.elements = max([self.elements, *(x.numel() for x in tree_leaves(made) if isinstance(x, Tensor))])
        return made


def test_the_logits_of_32k_tokens_never_exist_at_once() -> None:
    hidden = torch.empty(32_768, 256, device="meta", requires_grad=True)
    weight = torch.empty(32_768, 256, device="meta", requires_grad=True)
    targets = torch.empty(32_768, dtype=torch.int64, device="meta")
    with Largest() as ours:
        chunked_cross_entropy(hidden, weight, targets).backward()
    with Largest() as theirs:
        plain(hidden, weight, targets).backward()
    assert theirs.elements == 32_768 * 32_768
    assert ours.elements == loss.CHUNK_ELSEWHERE == 4096 * 32_768
    assert rows_in_chunk(torch.empty(32_768, 1)) == 512
    assert rows_in_chunk(torch.empty(1 << 25, 1, device="cpu")) == 1
