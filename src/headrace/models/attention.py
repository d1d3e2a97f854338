"""Causal attention, over whole rows or within the documents of a packed row.

A mask is made once per forward pass and shared by all layers. On CUDA it is a block mask for flex_attention: which
128 x 128 blocks hold anything at all is worked out from the first and last document of each block, so that no L x L
mask exists anywhere (a row of 32,768 tokens would need 1 GiB). Elsewhere it is a dense one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BLOCK = 128  # the side of a block in flex_attention's own kernels

Mask = Tensor | BlockMask | None


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """[B, H, L, D] queries over [B, H / group, S, D] keys and values; no mask means causal, or one query over all."""
    grouped = q.shape[1] != k.shape[1]
    if isinstance(mask, BlockMask):
        return _compiled_flex()(q, k, v, block_mask=mask, enable_gqa=grouped)  # type: ignore[no-any-return]
    if mask is not None and grouped:
        # The only fused CUDA kernel that takes a mask does not know groups; without it all L x L scores would exist.
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        grouped = False
    causal = mask is None and q.shape[2] > 1
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)


def document_mask(doc_ids: Tensor, *, flex: bool) -> Mask:
    """A token sees itself and what comes before it in its own document."""
    if flex and doc_ids.shape[1] % BLOCK == 0:
        return block_mask(doc_ids)
    return dense_mask(doc_ids)


def dense_mask(doc_ids: Tensor) -> Tensor:
    """[B, 1, L, L], True where a token may look."""
    return (doc_ids[:, None, :, None] == doc_ids[:, None, None, :]).tril()


def block_mask(doc_ids: Tensor) -> BlockMask:
    """The same for flex_attention, from the smallest and the largest document number in every block.

    Right for any numbers; as sparse as can be if they do not fall along a row, as those of a Loader never do.
    """
    blocks = doc_ids.view(len(doc_ids), -1, BLOCK)
    first, last = blocks.amin(2), blocks.amax(2)
    overlap = (first[:, :, None] <= last[:, None, :]) & (first[:, None, :] <= last[:, :, None])
    uniform = first == last
    same = uniform[:, :, None] & uniform[:, None, :] & (first[:, :, None] == first[:, None, :])
    whole = same.tril(-1)
    parts = overlap.tril() & ~whole

    def allowed(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        return (q >= kv) & (doc_ids[b, q] == doc_ids[b, kv])

    return BlockMask.from_kv_blocks(*_listed(parts), *_listed(whole), BLOCK_SIZE=BLOCK, mask_mod=allowed)


def cached_mask(new: int, seen: int, device: torch.device) -> Tensor | None:
    """For `new` tokens after `seen` others; None where attend needs no mask."""
    if new == 1 or seen == 0:
        return None
    return torch.ones(new, seen + new, dtype=torch.bool, device=device).tril(seen)


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks each row of blocks has, and which, those first."""
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32)[:, None], order.int()[:, None]


@cache
def _compiled_flex() -> Any:
    """Only compiled is it a kernel; as plain Python it makes all scores."""
    return torch.compile(flex_attention)
