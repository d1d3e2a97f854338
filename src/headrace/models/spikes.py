"""Spikes with adapting thresholds: which neurons fire, and the gradient that stands in for a step's.

    trace   a(t) = fade a(t-1) + (1 - fade) s(t - delay)
    spike   s(t) = 1 where potential(t) - strength a(t) is at least 0 and among the winners of its column, else 0

`fire_in_blocks` finds the spikes of `delay` tokens at once, because their thresholds follow from spikes before them; to
torch.compile it is one operator, however long the row. `fire_by_token` is the reference: one token after another,
differentiated by torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headrace.models.scan import scan


class Rule(NamedTuple):
    column: int  # neurons that compete
    winners: int  # at most so many of them fire
    width: float  # the gradient is 1 at the threshold and a half so far from it


class Adaptation(NamedTuple):
    strength: Tensor  # [N]
    fade: Tensor  # [N]
    trace: Tensor  # [B, N] before the first token
    late: Tensor  # [B, delay, N] spikes that have not reached the trace
    same: Tensor | None = None  # [B, L, 1] whether the token before is of the same document
    same_late: Tensor | None = None  # [B, L, 1] whether the token from which a spike arrives is


class Fired(NamedTuple):
    spikes: Tensor  # [B, L, N]
    trace: Tensor
    late: Tensor


def fire_in_blocks(potential: Tensor, adaptation: Adaptation, rule: Rule) -> Fired:
    found, _, traces = torch.ops.headrace.fire(potential, *adaptation, *rule)
    delay = adaptation.late.shape[1]
    return Fired(found[:, delay:], traces[:, -1], found[:, potential.shape[1] :])


def fire_by_token(potential: Tensor, adaptation: Adaptation, rule: Rule) -> Fired:
    strength, fade, trace, late, same, same_late = adaptation
    spikes = list(late.unbind(1))
    for t, now in enumerate(potential.unbind(1)):
        kept, arriving = fade * trace, (1 - fade) * spikes[t]
        if same is not None and same_late is not None:
            kept, arriving = kept * same[:, t], arriving * same_late[:, t]
        trace = kept + arriving
        spikes.append(fire(now - strength * trace, rule))
    delay = late.shape[1]
    return Fired(torch.stack(spikes[delay:], 1), trace, torch.stack(spikes[-delay:], 1))


def fire(potential: Tensor, rule: Rule) -> Tensor:
    """1 where a potential is at least 0 and among the largest of its column, else 0.

    The gradient is the slope of an arc tangent at the threshold that decided, be it 0 or the weakest winner.
    """
    return _Fire.apply(potential, rule)  # type: ignore[no-any-return, no-untyped-call]


class _Fire(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, potential: Tensor, rule: Rule) -> Tensor:
        above = _above(potential, rule.column, rule.winners)
        ctx.save_for_backward(above)
        ctx.width = rule.width
        return (above >= 0).to(potential.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (above,) = ctx.saved_tensors
        return grad / _slowness(above, ctx.width), None


def _above(potential: Tensor, column: int, winners: int) -> Tensor:
    """How far each potential is above what decides, its threshold or the weakest winner of its column."""
    columns = potential.reshape(*potential.shape[:-1], -1, column)
    return (columns - weakest_winner(columns, winners).clamp_(min=0.0)).flatten(-2)


def _slowness(above: Tensor, width: float) -> Tensor:
    return (above / width).square_().add_(1.0)


def _forward(
    potential: Tensor,
    strength: Tensor,
    fade: Tensor,
    trace: Tensor,
    late: Tensor,
    same: Tensor | None,
    same_late: Tensor | None,
    column: int,
    winners: int,
    width: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Late spikes with the row's behind them, how far potentials were above what decides, and all traces."""
    length, delay = potential.shape[1], late.shape[1]
    spikes = torch.cat([late, torch.empty_like(potential)], 1)
    above, traces = torch.empty_like(potential), torch.empty_like(potential)
    for begin in range(0, length, delay):
        part = slice(begin, min(begin + delay, length))
        arriving = spikes[:, part] * (1 - fade)
        if same_late is not None:
            arriving *= same_late[:, part]
        traces[:, part] = scan(_kept(fade, same, part), arriving, trace)
        trace = traces[:, part.stop - 1]
        above[:, part] = _above(torch.addcmul(potential[:, part], strength, traces[:, part], value=-1), column, winners)
        spikes[:, delay + begin : delay + part.stop] = above[:, part] >= 0
    return spikes, above, traces


def _backward(
    grad: Tensor,
    grad_traces: Tensor,
    spikes: Tensor,
    above: Tensor,
    traces: Tensor,
    strength: Tensor,
    fade: Tensor,
    trace: Tensor,
    same: Tensor | None,
    same_late: Tensor | None,
    width: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """From the last block to the first: what a block's spikes did to the thresholds of the next is known by then."""
    length, delay = above.shape[1], spikes.shape[1] - above.shape[1]
    grad, later = grad.clone(), torch.empty_like(above)
    grad_potential = torch.empty_like(above)
    after = None if same is None else torch.cat([same[:, 1:], same[:, :1]], 1)
    first = torch.zeros_like(trace)
    for begin in reversed(range(0, length, delay)):
        part = slice(begin, min(begin + delay, length))
        torch.div(
            grad[:, delay + begin : delay + part.stop], _slowness(above[:, part], width), out=grad_potential[:, part]
        )
        direct = torch.addcmul(grad_traces[:, part], strength, grad_potential[:, part], value=-1)
        kept = _kept(fade, after, part)
        later[:, part] = scan(kept.flip(1), direct.flip(1), first).flip(1)
        first = later[:, begin]
        caused = later[:, part] * (1 - fade)
        grad[:, part] += caused if same_late is None else caused * same_late[:, part]
    before = torch.cat([trace[:, None], traces[:, :-1]], 1)
    arrived = spikes[:, :length]
    if same is not None and same_late is not None:
        before, arrived = before * same, arrived * same_late
    grad_strength = -(grad_potential * traces).sum((0, 1))
    grad_fade = (later * (before - arrived)).sum((0, 1))
    return (
        grad_potential,
        grad_strength,
        grad_fade,
        first * _kept(fade, same, slice(0, 1))[:, 0],
        grad[:, :delay].clone(),
    )


def _kept(fade: Tensor, same: Tensor | None, part: slice) -> Tensor:
    return fade[None, None] if same is None else fade * same[:, part]


_ROW = "Tensor strength, Tensor fade, Tensor trace"
_SAME = "Tensor? same, Tensor? same_late"
_op = torch.library.custom_op(
    "headrace::fire",
    _forward,
    mutates_args=(),
    schema=f"(Tensor potential, {_ROW}, Tensor late, {_SAME}, int column, int winners, float width) "
    "-> (Tensor, Tensor, Tensor)",
)
_grad_op = torch.library.custom_op(
    "headrace::fire_backward",
    _backward,
    mutates_args=(),
    schema=f"(Tensor grad, Tensor grad_traces, Tensor spikes, Tensor above, Tensor traces, {_ROW}, {_SAME}, "
    "float width) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, strength, fade, trace, _, same, same_late, _, _, ctx.width = inputs
    ctx.save_for_backward(*output, strength, fade, trace, same, same_late)


def _differentiate(ctx: Any, grad: Tensor, _: Tensor, grad_traces: Tensor) -> tuple[Tensor | None, ...]:
    found = torch.ops.headrace.fire_backward(grad, grad_traces, *ctx.saved_tensors, ctx.width)
    return (*found, None, None, None, None, None)


def _shapes(potential: Tensor, strength: Tensor, fade: Tensor, trace: Tensor, late: Tensor, *_: Any) -> Any:
    return torch.cat([late, potential], 1), torch.empty_like(potential), torch.empty_like(potential)


def _grad_shapes(grad: Tensor, _: Tensor, spikes: Tensor, above: Tensor, *rest: Any) -> Any:
    delay = spikes.shape[1] - above.shape[1]
    strength, fade, trace = rest[1:4]
    return (*(torch.empty_like(x) for x in (above, strength, fade, trace)), grad.new_empty(grad[:, :delay].shape))


_op.register_fake(_shapes)
_grad_op.register_fake(_grad_shapes)
_op.register_autograd(_differentiate, setup_context=_keep)


def weakest_winner(columns: Tensor, winners: int) -> Tensor:
    """The so-many-th largest [..., 1] of each column."""
    size = columns.shape[-1]
    if columns.device.type == "cpu" and _power_of_two(winners) and _power_of_two(size):
        return _by_network(columns, winners)
    return columns.topk(winners, sorted=False).values.amin(-1, keepdim=True)


def _by_network(columns: Tensor, winners: int) -> Tensor:
    """The same from comparisons of whole planes, one for each place in a column, which a CPU does 16 at a time.

    Lists of as many neurons as win are sorted, then two by two become one: the larger of the best of one and the worst
    of the other, and so on, are the best of both. 8 of 64 for 1,024 tokens and 29 columns took 8 ms where topk took 22.
    """
    lists = columns.reshape(-1, winners, columns.shape[-1] // winners)
    ranks = list(lists.permute(1, 2, 0).contiguous())  # [lists, columns] each, to become best, second best, ...
    for i, j in _sorting_network(winners):
        _order(ranks, i, j)
    while len(ranks[0]) > 1:
        half = len(ranks[0]) // 2
        ranks = [torch.maximum(ranks[i][:half], ranks[-1 - i][half:]) for i in range(winners)]
        for distance in (1 << bit for bit in reversed(range(winners.bit_length() - 1))):
            for i in range(winners):
                if not i & distance:
                    _order(ranks, i, i + distance)
    weakest: Tensor = ranks[-1].reshape(*columns.shape[:-1], 1)
    return weakest


def _order(ranks: list[Tensor], i: int, j: int) -> None:
    ranks[i], ranks[j] = torch.maximum(ranks[i], ranks[j]), torch.minimum(ranks[i], ranks[j])


def _sorting_network(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's merge-exchange, for a power of two: 19 comparisons for 8."""
    sorted_by = 1
    while sorted_by < count:
        step = sorted_by
        while step:
            for first in range(step % sorted_by, count - step, 2 * step):
                for i in range(first, min(first + step, count - step)):
                    if i // (2 * sorted_by) == (i + step) // (2 * sorted_by):
                        yield i, i + step
            step //= 2
        sorted_by *= 2


def _power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
