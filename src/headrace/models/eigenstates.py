"""Eigenstates with a vector each, written, turned, faded and read: the recurrence of TEN, computed in three ways.

Head by head, eigenstate k of K holds a complex vector c_k of P values:

    c_k(t) = lambda_k(t) c_k(t-1) + b_k(t) v(t)        lambda = exp(log_decay + 2 pi i turn),  log_decay <= 0
    y(t)   = Re sum_k conj(q_k(t)) c_k(t)

`sequential` is the recurrence as it stands. `fft` convolves with the powers of eigenvalues that are the same for all
tokens. `chunked` is made of matrix products and serves any eigenvalues: within a chunk every token reads every earlier
one through a CHUNK x CHUNK matrix, and from chunk to chunk only the state passes, by `scan`.

Two changes of variables make the matrices real and safe. Turning is taken out of the recurrence: in a frame that turns
with the eigenvalue, lambda is the bare decay, and q and b are turned once by the sum of all turns so far (kept modulo
one turn, or a long row would lose its phase in float32). Decay is split at the middle of the chunk,
exp(A_i - A_j) = exp(A_i - A_mid) exp(A_mid - A_j), so that neither factor leaves float32 as long as a token's log_decay
is at least LEAST: 32 tokens of 2.5 make exp(80), and float32 ends at exp(88).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headrace.errors import UsageError
from headrace.models.scan import scan

METHODS = ("auto", "sequential", "fft", "chunked")
CHUNK = 64
LEAST = -2.5  # log_decay of one token
FEW = 4  # tokens up to which one after the other is fastest


def mix(
    q: Tensor,
    b: Tensor,
    v: Tensor,
    log_decay: Tensor,
    turn: Tensor,
    *,
    doc_ids: Tensor | None = None,
    state: Tensor | None = None,
    method: str = "auto",
) -> tuple[Tensor, Tensor]:
    """What each token reads, [B, L, H, P], and the state after the last one, [B, H, 2K, P]; both in float32.

    q and b are [B, L, H, 2K], the real parts before the imaginary ones; v is [B, L, H, P]; log_decay and turn are
    [B, L, H, K], or [1, 1, H, K] for all tokens. With `doc_ids` [B, L] every document begins with an empty state.
    """
    if method not in METHODS:
        raise UsageError(f"method {method!r}: it must be one of {', '.join(METHODS)}.")
    if method == "auto":
        method = "sequential" if q.shape[1] <= FEW else "chunked"
    if method == "chunked":
        return _chunked(q, b, v, log_decay, turn, doc_ids, state)
    return _state_by_state(q, b, v, log_decay, turn, doc_ids, state, method)


def follow(
    inputs: Tensor,
    log_decay: Tensor,
    turn: Tensor,
    *,
    doc_ids: Tensor | None = None,
    state: Tensor | None = None,
    method: str = "auto",
) -> Tensor:
    """The states themselves, [B, L, ...] and complex, of eigenstates that are written into directly.

    Made for one number in each eigenstate; with vectors there is too much of it, and `mix` never makes it all.
    """
    eigenvalues = torch.polar(_wide(log_decay).exp(), math.tau * _wide(turn))
    eigenvalues = eigenvalues.view(*eigenvalues.shape, *(1,) * (inputs.dim() - eigenvalues.dim()))
    if doc_ids is not None:
        eigenvalues = eigenvalues * _continues(doc_ids).view(*doc_ids.shape, *(1,) * (inputs.dim() - 2))
    fixed = eigenvalues.shape[1] == 1
    if method in ("auto", "chunked"):
        method = "fft" if fixed and inputs.shape[1] > FEW else "auto"
    return scan(eigenvalues, inputs, state, method=method)


def _state_by_state(
    q: Tensor,
    b: Tensor,
    v: Tensor,
    log_decay: Tensor,
    turn: Tensor,
    doc_ids: Tensor | None,
    state: Tensor | None,
    method: str,
) -> tuple[Tensor, Tensor]:
    """All states of all tokens, K x P complex numbers each: exact and plain, and far too much for a long row."""
    inputs = _complex(b, -1)[..., None] * _wide(v)[..., None, :]
    before = None if state is None else _complex(state, -2)
    states = follow(inputs, log_decay, turn, doc_ids=doc_ids, state=before, method=method)
    read = (_complex(q, -1).conj()[..., None] * states).real.sum(-2)
    return read, torch.cat([states[:, -1].real, states[:, -1].imag], -2)


def _chunked(
    q: Tensor, b: Tensor, v: Tensor, log_decay: Tensor, turn: Tensor, doc_ids: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    length, dtype = q.shape[1], _product_dtype(q)
    angle = _angles(turn, length)
    cos, sin = angle.cos(), angle.sin()
    decay = _in_chunks(_wide(log_decay).expand(len(q), length, -1, -1)).cumsum(2)  # of a token and all before it
    middle, end = decay[:, :, decay.shape[2] // 2 - 1, None], decay[:, :, -1, None]
    # Two exponentials and no division, whose gradient would square a factor of exp(80).
    q = _for_products(_turned_back(_in_chunks(q), cos, sin, (decay - middle).exp()), dtype)
    b = _for_products(_turned_back(_in_chunks(b), cos, sin, (middle - decay).exp()), dtype)
    v = _for_products(_in_chunks(v), dtype)
    docs = None if doc_ids is None else _Documents(doc_ids)
    to_middle, to_end = (_twice(x.exp()).transpose(2, 3).mT for x in (middle, end - middle))  # [B, N, H, 2K, 1]
    ends = _states_after_chunks(b, v, to_middle, to_end, docs, state)
    first = torch.zeros_like(ends[:, :1]) if state is None else _wide(state)[:, None]
    earlier = q @ (to_middle * torch.cat([first, ends[:, :-1]], 1)).to(dtype)
    if docs is not None:
        earlier = earlier * docs.first[:, :, None, :, None]
    scores = (q @ b.mT).masked_fill(_hidden(q.shape[3], q.device) if docs is None else docs.hidden[:, :, None], 0.0)
    read = _wide(scores @ v + earlier).transpose(2, 3).flatten(1, 2)[:, :length]
    return read, _turned_on(ends[:, -1], cos[:, -1], sin[:, -1])


def _states_after_chunks(
    b: Tensor, v: Tensor, to_middle: Tensor, to_end: Tensor, docs: _Documents | None, state: Tensor | None
) -> Tensor:
    """[B, N, H, 2K, P], in the frame that turns."""
    kept = to_middle * to_end
    if docs is not None:
        b, kept = b * docs.last[:, :, None, :, None], kept * docs.goes_on[:, :, None, None, None]
    return scan(kept, to_end * _wide(b.mT @ v), state)


class _Documents:
    """Which tokens of a chunk belong together, and to the documents that the chunk begins and ends with."""

    def __init__(self, doc_ids: Tensor) -> None:
        length = doc_ids.shape[1]
        size = min(CHUNK, length)
        padded = torch.cat([doc_ids, doc_ids[:, -1:].expand(-1, -length % size)], 1)
        ids = padded.unflatten(1, (-1, size))  # type: ignore[no-untyped-call]
        last = ids[:, :, -1]
        before = torch.cat([ids[:, :1, 0], last[:, :-1]], 1)  # a state that is given belongs to the first document
        self.last = ids == last[:, :, None]
        self.first = ids == before[:, :, None]
        self.goes_on = before == last
        self.hidden = (ids[:, :, :, None] != ids[:, :, None, :]) | _hidden(size, doc_ids.device)


def _continues(doc_ids: Tensor) -> Tensor:
    """1 where a token is in the document of the one before it."""
    same = doc_ids[:, 1:] == doc_ids[:, :-1]
    return torch.cat([same.new_ones(len(same), 1), same], 1).float()


def _hidden(size: int, device: torch.device) -> Tensor:
    """[C, C], True for what comes later."""
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1)


def _angles(turn: Tensor, length: int) -> Tensor:
    """The sum of all turns up to each token in radians, in chunks; after the end it stays as it is.

    Turns are summed within chunks, and the sums of the chunks in float64 where there is such a thing: after 32,768
    tokens a plain sum in float32 would be off by up to 0.01 radian.
    """
    turn, widest = _wide(turn), torch.float32 if turn.device.type == "mps" else torch.float64
    chunks = _in_chunks((turn - turn.round()).expand(-1, length, -1, -1))
    totals = chunks.sum(2, keepdim=True, dtype=widest)
    before = totals.cumsum(1) - totals
    return math.tau * (chunks.cumsum(2) + (before - before.round()).to(turn.dtype))


def _turned_back(x: Tensor, cos: Tensor, sin: Tensor, factor: Tensor) -> Tensor:
    """Both parts of x times exp(-i angle) times the factor, which meets the smaller tensors first."""
    cos, sin = cos * factor, sin * factor
    a, c = _wide(x).chunk(2, -1)
    return torch.cat([a * cos + c * sin, c * cos - a * sin], -1)


def _turned_on(state: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The state [B, H, 2K, P] out of the frame that turns with it."""
    a, c = state.chunk(2, -2)
    cos, sin = cos[:, -1, :, :, None], sin[:, -1, :, :, None]
    return torch.cat([a * cos - c * sin, c * cos + a * sin], -2)


def _in_chunks(x: Tensor) -> Tensor:
    """[B, L, H, D] to [B, N, C, H, D]; zeros after the end neither fade nor turn nor write anything."""
    size = min(CHUNK, x.shape[1])
    missing = -x.shape[1] % size
    if missing:
        x = torch.cat([x, x.new_zeros(len(x), missing, *x.shape[2:])], 1)
    return x.unflatten(1, (-1, size))  # type: ignore[no-any-return, no-untyped-call]


def _for_products(x: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, N, C, H, D] to [B, N, H, C, D]."""
    return x.transpose(2, 3).to(dtype, memory_format=torch.contiguous_format)


def _wide(x: Tensor) -> Tensor:
    """At least float32; float64 stays, for those who want to know what is exact."""
    return x if x.dtype == torch.float64 else x.float()


def _twice(x: Tensor) -> Tensor:
    """The same for real and imaginary parts."""
    return torch.cat([x, x], -1)


def _complex(x: Tensor, dim: int) -> Tensor:
    real, imaginary = _wide(x).chunk(2, dim)
    return torch.complex(real, imaginary)


def _product_dtype(x: Tensor) -> torch.dtype:
    """Of the matrix products: what autocast says, or float32; decays and states are float32 always."""
    device = x.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return torch.float64 if x.dtype == torch.float64 else torch.float32
