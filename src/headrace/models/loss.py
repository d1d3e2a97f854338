"""Cross-entropy in chunks of tokens: the logits of a long batch never exist at once.

The gradient of the loss with respect to the logits is known as soon as the logits are, so the forward pass makes the
gradients of the hidden states and the weight while it has a chunk in hand. Nothing is computed twice: three matrix
products, as without chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd.function import once_differentiable

# Logits in one chunk. On a CPU core 2^21 to 2^27 take the same time within the noise (3.3 to 3.6 s for 4,096 tokens,
# vocabulary 32,768, width 256), so the limit there is about memory: 2^24 are 64 MiB. A GPU is given more rows, because
# every chunk reads and writes the whole gradient of the weight; this figure is an estimate, not yet measured on one.
CHUNK_ON_CPU = 1 << 24
CHUNK_ELSEWHERE = 1 << 27


@dataclass(frozen=True)
class Evaluation:
    """Sums over the targets that count, as tensors on the device: reading them is left to the caller."""

    loss_sum: Tensor
    correct: Tensor
    count: Tensor


def chunked_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, mask: Tensor | None = None, *, rows: int | None = None
) -> Tensor:
    """Mean of -log softmax(hidden @ weight.T)[target], in float32, over the targets that count.

    A target counts unless the mask is False there or it is negative. Where none counts the loss is 0.
    """
    hidden, targets, counts = _flattened(hidden, targets, mask)
    rows = rows or rows_in_chunk(weight)
    dtype = _product_dtype(hidden)
    if torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad):
        total = _LossAndGradients.apply(hidden, weight, targets, counts, dtype, rows)  # type: ignore[no-untyped-call]
    else:
        total = evaluate_cross_entropy(hidden, weight, targets, counts, rows=rows, accuracy=False).loss_sum
    return total / counts.sum().clamp(min=1)  # type: ignore[no-any-return]


@torch.no_grad()
def evaluate_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    mask: Tensor | None = None,
    *,
    rows: int | None = None,
    accuracy: bool = True,
) -> Evaluation:
    """Summed loss and right next tokens, without gradients."""
    hidden, targets, counts = _flattened(hidden, targets, mask)
    dtype = _product_dtype(hidden)
    weight = weight.to(dtype)
    loss_sum = torch.zeros((), dtype=torch.float32, device=hidden.device)
    correct = torch.zeros((), dtype=torch.int64, device=hidden.device)
    for part in _chunks(len(targets), rows or rows_in_chunk(weight)):
        logits = F.linear(hidden[part].to(dtype), weight)
        if accuracy:
            correct += ((logits.argmax(-1) == targets[part]) & counts[part]).sum()
        loss_sum += _negative_log_likelihood(_log_softmax(logits), targets[part], counts[part])
    return Evaluation(loss_sum, correct, counts.sum())


def rows_in_chunk(weight: Tensor) -> int:
    """Tokens in one chunk, so that its logits stay within the limit."""
    limit = CHUNK_ON_CPU if weight.device.type == "cpu" else CHUNK_ELSEWHERE
    return max(1, limit // len(weight))


class _LossAndGradients(torch.autograd.Function):
    """The sum and not the mean: 1 / count comes back as the gradient of the sum, so float16 does not underflow."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, counts: Tensor, dtype: torch.dtype, rows: int
    ) -> Tensor:
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        need_hidden, need_weight = ctx.needs_input_grad[:2]
        grad_hidden = torch.empty_like(hidden) if need_hidden else None
        grad_weight: Tensor | None = None
        factor = weight.to(dtype)
        for part in _chunks(len(targets), rows):
            inputs = hidden[part].to(dtype)
            log_probabilities = _log_softmax(F.linear(inputs, factor))
            total += _negative_log_likelihood(log_probabilities, targets[part], counts[part])
            grad = _grad_of_logits(log_probabilities, targets[part]).to(dtype)
            kept = counts[part, None].to(dtype)  # masks the thin side of both products
            if grad_hidden is not None:
                grad_hidden[part] = (grad @ factor) * kept
            if need_weight:
                grad_weight = _add_product(grad_weight, grad.T, inputs * kept)
        ctx.save_for_backward(grad_hidden, None if grad_weight is None else grad_weight.to(weight.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        # A product with the scalar on the device: asking whether it is 1 would wait for it.
        gradients = [None if grad is None else grad * grad_output.to(grad.dtype) for grad in ctx.saved_tensors]
        return (*gradients, None, None, None, None)


def _flattened(hidden: Tensor, targets: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """[N, D] states, [N] targets that are safe to index with, and [N] which of them count."""
    targets = targets.reshape(-1).long()
    counts = targets >= 0
    if mask is not None:
        counts = counts & mask.reshape(-1).bool()
    return hidden.reshape(len(targets), -1), targets.clamp(min=0), counts


def _product_dtype(hidden: Tensor) -> torch.dtype:
    """What F.linear would compute in here."""
    device = hidden.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return hidden.dtype


def _chunks(count: int, rows: int) -> list[slice]:
    return [slice(begin, min(begin + rows, count)) for begin in range(0, count, rows)]


def _log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits, -1, dtype=torch.float32)


def _negative_log_likelihood(log_probabilities: Tensor, targets: Tensor, counts: Tensor) -> Tensor:
    return -(log_probabilities.gather(1, targets[:, None]).squeeze(1) * counts).sum()


def _grad_of_logits(log_probabilities: Tensor, targets: Tensor) -> Tensor:
    """softmax - one-hot, in the memory of the log-probabilities."""
    grad = log_probabilities.exp_()
    return grad.scatter_add_(1, targets[:, None], grad.new_full((len(targets), 1), -1.0))


def _add_product(total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    """total + left @ right in float32, in the memory of total."""
    if total is None:
        return (left @ right).float()
    if left.dtype == total.dtype:
        return total.addmm_(left, right)
    return total.add_(left @ right)
