"""The transformer: RMSNorm, rotary positions, SwiGLU, grouped-query attention; weight by weight the layout of Llama."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from headrace.errors import UsageError
from headrace.models.attention import Mask, attend, cached_mask, document_mask
from headrace.models.base import LanguageModel
from headrace.models.feedforward import SwiGLU
from headrace.models.recompute import run_block

DOCUMENT_MASKS = ("auto", "flex", "dense")

# Parameters in all at a vocabulary of 32,768, a tied table counted once; tests/models/test_transformer.py counts them.
SIZES: dict[str, dict[str, Any]] = {
    # 5.2M, of them 1.0M not in the table
    "nano": {"width": 128, "layers": 4, "heads": 2, "ffn": 512, "context": 256},
    # 14.1M
    "micro": {"width": 256, "layers": 6, "heads": 4, "ffn": 896, "context": 1024},
    # 110M
    "tiny": {"width": 768, "layers": 12, "heads": 12, "ffn": 2048, "context": 2048},
    # 342M
    "small": {"width": 1024, "layers": 24, "heads": 16, "ffn": 2816, "context": 4096},
    # 854M
    "medium": {
        "width": 1536, "layers": 28, "heads": 12, "kv_heads": 4, "ffn": 4864, "context": 16_384, "rope_base": 500_000.0,
    },
    # 1.78B
    "large": {
        "width": 2048, "layers": 32, "heads": 16, "kv_heads": 4, "ffn": 6656, "context": 32_768, "rope_base": 500_000.0,
        "tied": False,
    },
    # 3.22B
    "xlarge": {
        "width": 3072, "layers": 28, "heads": 24, "kv_heads": 8, "ffn": 8960, "context": 32_768, "rope_base": 500_000.0,
        "tied": False,
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    vocab_size: int
    context: int  # the longest sequence
    width: int
    layers: int
    heads: int
    ffn: int  # width of the feed-forward layer
    kv_heads: int | None = None  # None: as many as heads
    rope_base: float = 10_000.0
    norm_eps: float = 1e-5
    tied: bool = True  # one table for tokens and output
    recompute: bool = False  # activations again in the backward pass: a third more work, memory of one block
    document_mask: str = "auto"  # flex on CUDA, dense elsewhere

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "width", "layers", "heads", "ffn"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: it must be at least 1.")
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise UsageError(
                f"width {self.width} with {self.heads} heads: each head needs the same, even width. "
                f"Take heads of 64 or 128."
            )
        if self.groups < 1 or self.heads % self.groups:
            raise UsageError(f"kv_heads {self.kv_heads}: {self.heads} heads cannot share them equally.")
        if not self.rope_base > 1 or not self.norm_eps > 0:
            raise UsageError(
                f"rope_base {self.rope_base}, norm_eps {self.norm_eps}: they must be above 1 and above 0; "
                f"10,000 and 1e-5 are usual."
            )
        if self.document_mask not in DOCUMENT_MASKS:
            raise UsageError(f"document_mask {self.document_mask!r}: it must be one of {', '.join(DOCUMENT_MASKS)}.")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads


class Rotation:
    """Cosines and sines of a stretch of positions, in float32, made once per forward pass and shared by all layers.

    Not a table that the model keeps: 1,024 positions take 0.15 ms on a CPU core, and there is nothing to move, cast or
    save. Positions run on over the documents of a packed row, because only their differences matter and attention
    never leaves a document.
    """

    def __init__(self, start: int, length: int, width: int, base: float, device: torch.device) -> None:
        frequencies = base ** (torch.arange(0, width, 2, device=device, dtype=torch.float32) / -width)
        positions = torch.arange(start, start + length, device=device, dtype=torch.float32)
        angles = (positions[:, None] * frequencies)[:, None]  # [L, 1, width / 2]
        self.cos, self.sin = angles.cos(), angles.sin()

    def turn(self, x: Tensor) -> Tensor:
        """[B, L, H, width]: the first half of a head with its second, as in the Hugging Face layout of Llama."""
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1).to(x.dtype)


class KeysAndValues:
    """The cache of one layer. It is made at the first use, in the type of the keys, which autocast decides."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.seen = 0
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def extended(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Everything so far, with these [B, H, L, D] at the end."""
        if self.keys is None or self.values is None:
            room = (*k.shape[:2], self.length, k.shape[3])
            self.keys, self.values = k.new_empty(room), v.new_empty(room)
        end = self.seen + k.shape[2]
        self.keys[:, :, self.seen : end] = k
        self.values[:, :, self.seen : end] = v
        self.seen = end
        return self.keys[:, :, :end], self.values[:, :, :end]


class Attention(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.head_width = config.head_width
        kv_width = config.groups * config.head_width
        self.q = nn.Linear(config.width, config.width, bias=False)
        self.k = nn.Linear(config.width, kv_width, bias=False)
        self.v = nn.Linear(config.width, kv_width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, rotation: Rotation, mask: Mask, cache: KeysAndValues | None) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (-1, self.head_width)) for part in (self.q, self.k, self.v))
        q, k = rotation.turn(q), rotation.turn(k)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        if cache is not None:
            k, v = cache.extended(k, v)
        mixed = attend(q, k, v, mask)
        return self.out(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class Block(nn.Module):
    """`recompute` may be switched for each block, at any time."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.recompute = config.recompute
        self.attention_norm = nn.RMSNorm(config.width, config.norm_eps)
        self.attention = Attention(config)
        self.ffn_norm = nn.RMSNorm(config.width, config.norm_eps)
        self.ffn = SwiGLU(config.width, config.ffn)

    def forward(self, x: Tensor, rotation: Rotation, mask: Mask, cache: KeysAndValues | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), rotation, mask, cache)
        return x + self.ffn(self.ffn_norm(x))  # type: ignore[no-any-return]


class Transformer(LanguageModel):
    config_type = TransformerConfig
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = SIZES
    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, config.norm_eps)

    def hidden(
        self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: list[KeysAndValues] | None = None
    ) -> Tensor:
        seen = cache[0].seen if cache else 0
        length, device = tokens.shape[1], tokens.device
        self._check_length(seen + length)
        rotation = Rotation(seen, length, self.config.head_width, self.config.rope_base, device)
        mask = self._mask(doc_ids, seen, length, device)
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = run_block(block, x, rotation, mask, cache=cache[i] if cache else None)
        return self.norm(x)  # type: ignore[no-any-return]

    def new_cache(self, batch: int, length: int) -> list[KeysAndValues]:
        self._check_length(length)
        return [KeysAndValues(length) for _ in self.blocks]

    def flops_per_token(self, seq_len: int) -> float:
        """6 for each weight, and 12 * layers * width * seq_len for attention.

        Attention is counted over the whole square, as published figures for the use of hardware do; a causal kernel
        does half of it. Recomputed activations are not counted.
        """
        return super().flops_per_token(seq_len) + 12.0 * self.config.layers * self.config.width * seq_len

    @torch.no_grad()
    def initialise(self, seed: int = 0) -> None:
        """Normal, with a deviation of sqrt(2 / (5 * width)): the first loss is ln(vocabulary) + 0.2 at every width.

        What is added to the residual stream is divided by sqrt(2 * layers), so that the stream does not grow with
        depth.
        """
        device = self.embedding.weight.device
        if device.type == "meta":
            return
        generator = torch.Generator(device).manual_seed(seed)
        deviation = math.sqrt(2 / (5 * self.config.width))
        for name, parameter in self.named_parameters():
            if parameter.dim() == 1:
                parameter.fill_(1.0)
            else:
                added = name.endswith(("attention.out.weight", "ffn.down.weight"))
                scale = 1 / math.sqrt(2 * self.config.layers) if added else 1.0
                parameter.normal_(0.0, deviation * scale, generator=generator)

    def _mask(self, doc_ids: Tensor | None, seen: int, length: int, device: torch.device) -> Mask:
        if doc_ids is None:
            return cached_mask(length, seen, device)
        if seen:
            raise UsageError("doc_ids with a cache: documents are kept apart in training, not in generation.")
        choice = self.config.document_mask
        return document_mask(doc_ids, flex=choice == "flex" or (choice == "auto" and device.type == "cuda"))

    def _check_length(self, length: int) -> None:
        if length > self.context:
            raise UsageError(
                f"{length:,} tokens in a row: this model was built for at most {self.context:,}. "
                f"Use shorter sequences, or build it with context={length}."
            )
