"""The linear recurrence c(t) = decay(t) c(t-1) + input(t), element by element, computed in three ways that agree.

`sequential` goes token by token: the reference, and the fastest for a few tokens. `blocks` cuts the row into blocks of
about sqrt(L) tokens, goes through all blocks at once and then from block to block: 2 sqrt(L) steps instead of L, and it
reads the data three times, where doubling (log2(L) rounds over everything) reads it 3 log2(L) times. `fft` multiplies
spectra, which needs a decay that is the same for all tokens. None of them divides or takes a logarithm of a decay, so
decays of 0 (a fresh start) and 1 (nothing forgotten) are as exact as any other.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headrace.errors import UsageError

METHODS = ("auto", "sequential", "blocks", "fft")
FEW = 8  # tokens up to which one after the other is fastest


def scan(decay: Tensor, inputs: Tensor, initial: Tensor | None = None, *, method: str = "auto") -> Tensor:
    """States [B, L, ...] after each token, from inputs [B, L, ...] and decays that broadcast to them.

    A decay with one entry along L is the same for all tokens. `initial` [B, ...] is the state before the first token.
    Real or complex; the magnitude of a decay is at most 1.
    """
    _check(decay, inputs, method)
    if method == "auto":
        method = "sequential" if inputs.shape[1] <= FEW else "blocks"
    if method == "fft":
        return _by_fft(decay, inputs, initial)
    if method == "sequential":
        return _token_by_token(decay, inputs, initial)
    return _Blocks.apply(decay, inputs, initial)  # type: ignore[no-any-return, no-untyped-call]


def _check(decay: Tensor, inputs: Tensor, method: str) -> None:
    if method not in METHODS:
        raise UsageError(f"method {method!r}: it must be one of {', '.join(METHODS)}.")
    if decay.dim() != inputs.dim() or decay.shape[1] not in (1, inputs.shape[1]):
        raise UsageError(
            f"decays of shape {list(decay.shape)} for inputs of shape {list(inputs.shape)}: they need as many "
            f"dimensions, and along the second one entry or as many."
        )
    if method == "fft" and decay.shape[1] != 1 and inputs.shape[1] != 1:
        raise UsageError("method 'fft' is for decays that are the same for all tokens. Use 'blocks'.")


def _token_by_token(decay: Tensor, inputs: Tensor, initial: Tensor | None) -> Tensor:
    length = inputs.shape[1]
    decays = decay.unbind(1) if decay.shape[1] == length else decay.unbind(1) * length
    state = torch.zeros_like(inputs[:, 0]) if initial is None else initial
    states = []
    for now, new in zip(decays, inputs.unbind(1), strict=True):
        state = now * state + new
        states.append(state)
    return torch.stack(states, 1)


def _by_fft(decay: Tensor, inputs: Tensor, initial: Tensor | None) -> Tensor:
    """The input convolved with the powers of the decay, padded so that the end does not run into the beginning."""
    length = inputs.shape[1]
    powers = _powers(decay, length + 1)
    real = not (powers.is_complex() or inputs.is_complex())
    forward, back = (torch.fft.rfft, torch.fft.irfft) if real else (torch.fft.fft, torch.fft.ifft)
    spectrum = forward(inputs, 2 * length, dim=1) * forward(powers[:, :length], 2 * length, dim=1)
    states = back(spectrum, 2 * length, dim=1)[:, :length]
    return states if initial is None else states + powers[:, 1:] * initial[:, None]  # type: ignore[no-any-return]


def _powers(decay: Tensor, count: int) -> Tensor:
    """decay^0 ... decay^(count-1) along the second dimension, by doubling: no power has more than log2 roundings."""
    powers = torch.ones_like(decay)
    while powers.shape[1] < count:
        powers = torch.cat([powers, powers * (powers[:, -1:] * decay)], 1)
    return powers[:, :count]


class _Blocks(torch.autograd.Function):
    """Nothing but states and decays is kept for the backward pass, which is the same recurrence from the end."""

    @staticmethod
    def forward(ctx: Any, decay: Tensor, inputs: Tensor, initial: Tensor | None) -> Tensor:
        states = _in_blocks(decay, inputs, initial)
        ctx.save_for_backward(decay, states, initial)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        decay, states, initial = ctx.saved_tensors
        decay_back = decay.conj()
        later = decay_back if decay.shape[1] == 1 else torch.cat([decay_back[:, 1:], decay_back[:, :1]], 1)
        grad_inputs = _in_blocks(later.flip(1), grad.flip(1), None).flip(1)
        grad_initial = None if initial is None else _summed_to(decay_back[:, 0] * grad_inputs[:, 0], initial.shape)
        if not ctx.needs_input_grad[0]:
            return None, grad_inputs, grad_initial
        first = torch.zeros_like(states[:, :1]) if initial is None else initial[:, None].expand_as(states[:, :1])
        before = torch.cat([first, states[:, :-1]], 1)
        return _summed_to(grad_inputs * before.conj(), decay.shape, decay), grad_inputs, grad_initial


def _summed_to(grad: Tensor, shape: torch.Size, like: Tensor | None = None) -> Tensor:
    """The gradient of what was broadcast; real if it belongs to something real."""
    total = grad.sum_to_size(shape)
    return total.real if like is not None and total.is_complex() and not like.is_complex() else total


def _in_blocks(decay: Tensor, inputs: Tensor, initial: Tensor | None) -> Tensor:
    length = inputs.shape[1]
    if length <= FEW:
        return _token_by_token(decay, inputs, initial)
    size = math.isqrt(length - 1) + 1
    blocks = _cut(inputs, size)
    decays = decay[:, None] if decay.shape[1] == 1 else _cut(decay, size)
    states = blocks.clone()
    kept = [decays[:, :, 0]]  # what is left of the state before the block, token after token
    for i in range(1, size):
        now = decays[:, :, 0 if decays.shape[2] == 1 else i]
        states[:, :, i] += now * states[:, :, i - 1]
        kept.append(kept[-1] * now)
    ends = _token_by_token(kept[-1], states[:, :, -1], initial)  # after each block
    first = torch.zeros_like(ends[:, :1]) if initial is None else initial[:, None].expand_as(ends[:, :1])
    before = torch.cat([first, ends[:, :-1]], 1)
    for i in range(size):
        states[:, :, i] += kept[i] * before
    return states.flatten(1, 2)[:, :length]


def _cut(x: Tensor, size: int) -> Tensor:
    """[B, L, ...] to [B, blocks, size, ...], with zeros after the end."""
    missing = -x.shape[1] % size
    if missing:
        x = torch.cat([x, x.new_zeros(len(x), missing, *x.shape[2:])], 1)
    return x.unflatten(1, (-1, size))  # type: ignore[no-any-return, no-untyped-call]
