"""The transformer's own: attention, masks, positions, operations. What every model owes is in test_every_model.py."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.flop_counter import FlopCounterMode

from headrace.errors import UsageError
from headrace.models import build_model
from headrace.models.attention import BLOCK, attend, block_mask, dense_mask
from headrace.models.transformer import Transformer, TransformerConfig

VOCAB = 97


def small(**options: Any) -> Transformer:
    given = {"width": 32, "heads": 4, "kv_heads": 2, "layers": 2, "ffn": 64, "context": 64, **options}
    return build_model("transformer", "nano", vocab_size=VOCAB, **given)


def tokens(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def gradients(model: Transformer) -> list[Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("size", Transformer.sizes)
def test_shapes_that_kernels_like(size: str) -> None:
    model = build_model("transformer", size, vocab_size=32_768, device="meta")
    assert model.config.head_width in (64, 128)
    assert model.config.ffn % (64 if size in ("nano", "micro") else 256) == 0


@pytest.mark.parametrize("tied", [True, False])
def test_count_without_embeddings(tied: bool) -> None:
    model = small(tied=tied)
    tables = VOCAB * 32 * (1 if tied else 2)
    assert model.parameter_count() - model.parameter_count(embeddings=False) == tables
    assert model.parameter_count() == sum(tensor.numel() for tensor in model.state_dict().values())


@pytest.mark.parametrize("tied", [True, False])
def test_flops_are_what_the_counter_of_torch_counts(tied: bool) -> None:
    model = small(tied=tied, width=64, ffn=128)
    ids = tokens(2, 49)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(ids[:, :-1], ids[:, 1:]).backward()
    assert model.flops_per_token(48) == pytest.approx(counter.get_total_flops() / (2 * 48), rel=0.01)


@pytest.mark.parametrize("width", [32, 512])
@pytest.mark.parametrize("tied", [True, False])
def test_first_loss_is_that_of_guessing(width: int, tied: bool) -> None:
    model = small(width=width, ffn=2 * width, tied=tied)
    ids = tokens(4, 65)
    assert model(ids[:, :-1], ids[:, 1:]).item() == pytest.approx(math.log(VOCAB), abs=0.3)


def test_only_the_distance_of_positions_matters() -> None:
    model = small(layers=1)
    ids = tokens(1, 10)
    cache = model.new_cache(1, 64)
    cache[0].seen = 30  # as if 30 tokens had gone before
    cache[0].keys, cache[0].values = torch.zeros(1, 2, 64, 8), torch.zeros(1, 2, 64, 8)
    shifted = model.logits(ids, cache=cache)
    assert (shifted - model.logits(ids)).abs().max() > 1e-4  # those 30 are seen: all-zero keys get their share
    documents = torch.cat([torch.zeros(1, 30), torch.ones(1, 10)], 1).long()
    packed = model.logits(torch.cat([tokens(1, 30, seed=1), ids], 1), doc_ids=documents)
    torch.testing.assert_close(packed[:, 30:], model.logits(ids), rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_block_mask_is_the_dense_mask() -> None:
    ends = [[100, 256, 300, 301, 512], [128, 512], [1, 2, 3, 500, 512]]
    doc_ids = torch.stack([(torch.arange(512)[:, None] >= torch.tensor(row)).sum(1) for row in ends])
    dense = dense_mask(doc_ids)
    blocks = block_mask(doc_ids)
    sides = dense.view(3, 4, BLOCK, 4, BLOCK)
    assert torch.equal(blocks.to_dense()[:, 0].bool(), sides.any(4).any(2))
    full = blocks.full_kv_num_blocks
    assert full is not None
    assert torch.equal(full.sum((1, 2)), (sides.all(4).all(2)).sum((1, 2)))
    q, k, v = torch.randn(3, 4, 512, 8), torch.randn(3, 2, 512, 8), torch.randn(3, 2, 512, 8)
    flex = flex_attention(q, k, v, block_mask=blocks, enable_gqa=True)
    torch.testing.assert_close(flex, attend(q, k, v, dense), rtol=0, atol=1e-5)


def test_block_mask_needs_no_values() -> None:
    ids = torch.zeros(2, 256, dtype=torch.int64, device="meta")
    assert block_mask(ids).shape == (2, 1, 256, 256)


def test_block_mask_of_any_numbers_leaves_nothing_out() -> None:
    doc_ids = torch.randint(0, 5, (2, 512), generator=torch.Generator().manual_seed(0))
    doc_ids[:, :BLOCK] = 2
    needed = dense_mask(doc_ids).view(2, 4, BLOCK, 4, BLOCK).any(4).any(2)
    assert not (needed & ~block_mask(doc_ids).to_dense()[:, 0].bool()).any()


@pytest.mark.parametrize("pieces", [[10, 1, 1, 1, 7, 4], [1] * 24, [24]])
def test_cache_changes_nothing_in_bf16(pieces: list[int]) -> None:
    model = small(tied=False).to(torch.bfloat16)
    ids = tokens(2, 24)
    cache = model.new_cache(2, 24)
    found = torch.cat([model.logits(part, cache=cache) for part in ids.split(pieces, 1)], 1)
    torch.testing.assert_close(found, model.logits(ids), rtol=0, atol=0.1)


def test_activations_may_be_recomputed_in_some_blocks() -> None:
    ids = tokens(2, 33)
    plain, recomputing = small(), small(recompute=True)
    recomputing.blocks[1].recompute = False
    losses = [model(ids[:, :-1], ids[:, 1:]) for model in (plain, recomputing)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(*losses, rtol=0, atol=0)
    torch.testing.assert_close(gradients(recomputing), gradients(plain), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 5}, "width 32 with 5 heads"),
        ({"heads": 32, "kv_heads": 32}, "even width"),
        ({"kv_heads": 3}, "kv_heads 3: 4 heads cannot share"),
        ({"layers": 0}, "layers 0: it must be at least 1"),
        ({"rope_base": 1.0}, "rope_base 1.0"),
        ({"document_mask": "sparse"}, "document_mask 'sparse': it must be one of auto, flex, dense"),
    ],
)
def test_bad_config(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        small(**options)


def test_too_long() -> None:
    model = small(context=16)
    with pytest.raises(UsageError, match="17 tokens in a row: this model was built for at most 16"):
        model.logits(tokens(1, 17))
    with pytest.raises(UsageError, match="built for at most 16"):
        model.generate(tokens(1, 10), 7)
    cache = model.new_cache(1, 8)
    model.logits(tokens(1, 4), cache=cache)
    with pytest.raises(UsageError, match="doc_ids with a cache"):
        model.logits(tokens(1, 4), cache=cache, doc_ids=tokens(1, 4))


def test_config_stands_alone() -> None:
    config = TransformerConfig(vocab_size=10, context=8, width=16, layers=1, heads=2, ffn=32)
    assert (config.groups, config.head_width) == (2, 8)
