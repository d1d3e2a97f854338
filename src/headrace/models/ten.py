"""TEN, the temporal eigenstate network: tokens are remembered by decaying, turning states, at a cost linear in length.

Each block has heads of K eigenstates. A token writes its value into them, they fade and turn at rates that the token
itself speeds up or slows down, and the next tokens read them: docs/models.md has the mathematics and what each part is
worth. What a row of any length leaves behind is the state, so generation needs constant memory and time per token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from headrace.errors import UsageError
from headrace.models.base import LanguageModel
from headrace.models.eigenstates import CHUNK, LEAST, METHODS, follow, mix
from headrace.models.feedforward import SwiGLU
from headrace.models.recompute import run_block

GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples fill an interval evenly, however many there are
FASTEST = 10.0  # log of a rate; faster is no faster, and infinity times a pace of 0 would be no number

# Parameters in all at a vocabulary of 32,768, as many as the transformer of the same name has.
SIZES: dict[str, dict[str, Any]] = {
    "nano": {"width": 128, "layers": 4, "heads": 2, "states": 32, "ffn": 464, "context": 256},
    "micro": {"width": 256, "layers": 6, "heads": 4, "states": 32, "ffn": 808, "context": 1024},
    "tiny": {"width": 768, "layers": 12, "heads": 12, "states": 32, "ffn": 1792, "context": 2048},
    "small": {"width": 1024, "layers": 24, "heads": 16, "states": 32, "ffn": 2464, "context": 4096},
    "medium": {"width": 1536, "layers": 28, "heads": 12, "states": 64, "ffn": 3648, "context": 16_384},
    "large": {"width": 2048, "layers": 32, "heads": 16, "states": 64, "ffn": 4928, "context": 32_768, "tied": False},
    "xlarge": {"width": 3072, "layers": 28, "heads": 24, "states": 64, "ffn": 6560, "context": 32_768, "tied": False},
}


@dataclass(frozen=True, kw_only=True)
class TENConfig:
    vocab_size: int
    context: int  # what it is trained on; it reads and writes rows of any length
    width: int
    layers: int
    heads: int
    states: int  # eigenstates of a head
    ffn: int  # width of the feed-forward layer
    taps: int = 4  # of the short convolution; 0 leaves it out
    selective: bool = True  # tokens set the pace of their eigenvalues
    gated: bool = True
    published: bool = False  # a number in each eigenstate instead of a vector, always with fixed eigenvalues
    method: str = "auto"  # how the recurrence is computed
    norm_eps: float = 1e-5
    tied: bool = True  # one table for tokens and output
    recompute: bool = False  # activations again in the backward pass: a third more work, memory of one block

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "width", "layers", "heads", "states", "ffn"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: it must be at least 1.")
        if self.taps < 0:
            raise UsageError(f"taps {self.taps}: it must be at least 0; 4 is usual, 0 leaves the convolution out.")
        if self.width % self.heads:
            raise UsageError(f"width {self.width} with {self.heads} heads: each head needs the same width.")
        if self.method not in METHODS or (self.method == "fft" and self.selective and not self.published):
            raise UsageError(
                f"method {self.method!r}: it must be one of {', '.join(METHODS)}, and fft only with selective=False."
            )

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class Row:
    """What all blocks of a forward pass share: the documents of its rows, and which tokens the convolution may see."""

    def __init__(self, doc_ids: Tensor | None, taps: int) -> None:
        self.doc_ids = doc_ids
        self.same = [None if doc_ids is None else _same_document(doc_ids, i) for i in range(taps)]


class Memory:
    """The cache of one block: the state of its heads and the last inputs of the convolution."""

    def __init__(self) -> None:
        self.state: Tensor | None = None
        self.tail: Tensor | None = None


class Convolution(nn.Module):
    """A few taps into the past for each channel, so that what is written depends on the tokens just before."""

    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.taps = taps
        self.weight = nn.Parameter(torch.empty(taps * channels))  # flat: it is no matrix, and does not decay

    def forward(self, x: Tensor, row: Row, memory: Memory | None) -> Tensor:
        length, back = x.shape[1], self.taps - 1
        tail = memory.tail if memory is not None else None
        x = F.pad(x, (0, 0, back, 0)) if tail is None else torch.cat([tail, x], 1)
        if memory is not None:
            memory.tail = x[:, length:].clone()  # a view would keep the whole prompt
        total: Tensor | None = None
        for i, weight in enumerate(self.weight.view(self.taps, -1)):
            term = x[:, back - i : back - i + length] * weight
            same = row.same[i]
            term = term if same is None else term * same
            total = term if total is None else total + term
        assert total is not None
        return F.silu(total)


class Eigenvalues(nn.Module):
    """exp(pace * (-rate + 2 pi i frequency)) for every eigenstate; the pace is 1, or what the token makes it.

    Both are learned as logarithms: an optimizer moves all parameters by about as much, and a frequency of one turn in
    16,000 tokens would be gone after the first step.
    """

    def __init__(self, config: TENConfig) -> None:
        super().__init__()
        self.shape = (1, 1, config.heads, config.states)
        self.log_rate = nn.Parameter(torch.empty(config.heads * config.states))
        self.log_frequency = nn.Parameter(torch.empty(config.heads * config.states))
        self.pace = nn.Linear(config.width, config.heads) if config.selective and not config.published else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log_decay and turn for `mix`."""
        decay = -self.log_rate.float().clamp(max=FASTEST).exp().view(self.shape)
        turn = self.log_frequency.float().exp().view(self.shape)
        if self.pace is not None:
            pace = F.softplus(self.pace(x).float())[..., None]
            decay, turn = decay * pace, turn * pace
        return -LEAST * (decay / -LEAST).tanh(), turn


class Mixer(nn.Module):
    """Write, fade and turn, read: tokens learn from each other through vectors in eigenstates."""

    def __init__(self, config: TENConfig) -> None:
        super().__init__()
        self.config = config
        pairs = 2 * config.states * config.heads
        self.q = nn.Linear(config.width, pairs, bias=False)
        self.b = nn.Linear(config.width, pairs, bias=False)
        self.v = nn.Linear(config.width, config.width, bias=False)
        self.convolution = Convolution(2 * pairs + config.width, config.taps) if config.taps else None
        self.eigenvalues = Eigenvalues(config)
        self.norm = nn.Parameter(torch.empty(config.width))
        self.gate = nn.Linear(config.width, config.width, bias=False) if config.gated else None
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, row: Row, memory: Memory | None) -> Tensor:
        q, b, v = self._written(x, row, memory)
        log_decay, turn = self.eigenvalues(x)
        q, b = F.normalize(q.float(), dim=-1), F.normalize(b.float(), dim=-1) * _gain(log_decay)
        state = memory.state if memory is not None else None
        read, state = mix(q, b, v, log_decay, turn, doc_ids=row.doc_ids, state=state, method=self.config.method)
        if memory is not None:
            memory.state = state
        read = F.rms_norm(read, (self.config.head_width,), eps=self.config.norm_eps).flatten(2) * self.norm
        return self.out(read if self.gate is None else read * F.silu(self.gate(x)))  # type: ignore[no-any-return]

    def _written(self, x: Tensor, row: Row, memory: Memory | None) -> tuple[Tensor, ...]:
        parts = [self.q(x), self.b(x), self.v(x)]
        if self.convolution is not None:
            widths = [part.shape[-1] for part in parts]
            parts = list(self.convolution(torch.cat(parts, -1), row, memory).split(widths, -1))
        return tuple(part.unflatten(-1, (self.config.heads, -1)) for part in parts)


class PublishedMixer(nn.Module):
    """The published design, for comparison: a complex number in each eigenstate, and eigenvalues that never change."""

    def __init__(self, config: TENConfig) -> None:
        super().__init__()
        self.config = config
        self.b = nn.Linear(config.width, 2 * config.states * config.heads, bias=False)
        self.eigenvalues = Eigenvalues(config)
        self.read = nn.Parameter(torch.empty(config.heads, 2 * config.states, config.head_width))
        self.norm = nn.Parameter(torch.empty(config.width))
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, row: Row, memory: Memory | None) -> Tensor:
        log_decay, turn = self.eigenvalues(x)
        real, imaginary = self.b(x).float().unflatten(-1, (self.config.heads, -1)).chunk(2, -1)
        state = memory.state if memory is not None else None
        inputs = torch.complex(real, imaginary) * _gain(log_decay)[..., : self.config.states]
        states = follow(inputs, log_decay, turn, doc_ids=row.doc_ids, state=state, method=self.config.method)
        if memory is not None:
            memory.state = states[:, -1].clone()
        read = torch.einsum("blhk,hkp->blhp", torch.cat([states.real, states.imag], -1), self.read)
        read = F.rms_norm(read, (self.config.head_width,), eps=self.config.norm_eps).flatten(2) * self.norm
        return self.out(read)  # type: ignore[no-any-return]


class Block(nn.Module):
    """`recompute` may be switched for each block, at any time."""

    def __init__(self, config: TENConfig) -> None:
        super().__init__()
        self.recompute = config.recompute
        self.mixer_norm = nn.RMSNorm(config.width, config.norm_eps)
        self.mixer = PublishedMixer(config) if config.published else Mixer(config)
        self.ffn_norm = nn.RMSNorm(config.width, config.norm_eps)
        self.ffn = SwiGLU(config.width, config.ffn)

    def forward(self, x: Tensor, row: Row, memory: Memory | None) -> Tensor:
        x = x + self.mixer(self.mixer_norm(x), row, memory)
        return x + self.ffn(self.ffn_norm(x))  # type: ignore[no-any-return]


class TEN(LanguageModel):
    config_type = TENConfig
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = SIZES
    config: TENConfig

    def __init__(self, config: TENConfig) -> None:
        super().__init__(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, config.norm_eps)

    def hidden(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: list[Memory] | None = None) -> Tensor:
        if doc_ids is not None and cache is not None:
            raise UsageError("doc_ids with a cache: documents are kept apart in training, not in generation.")
        row = Row(doc_ids, self.config.taps)
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = run_block(block, x, row, cache=cache[i] if cache else None)
        return self.norm(x)  # type: ignore[no-any-return]

    def new_cache(self, batch: int, length: int) -> list[Memory]:
        return [Memory() for _ in self.blocks]

    def flops_per_token(self, seq_len: int) -> float:
        """6 for each weight, and the products of the chunked form; the published design by its weights alone."""
        config = self.config
        if config.published:
            return super().flops_per_token(seq_len)
        parts = 2 * config.states
        chunk = min(CHUNK, seq_len) * (parts + config.head_width) + 2 * parts * config.head_width
        return super().flops_per_token(seq_len) + 6.0 * config.layers * config.heads * chunk

    @torch.no_grad()
    def initialise(self, seed: int = 0) -> None:
        """Matrices as in the transformer; eigenvalues all over the context; a convolution that passes its input on."""
        device = self.embedding.weight.device
        if device.type == "meta":
            return
        generator = torch.Generator(device).manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, self._deviation(name), generator=generator)
            else:
                parameter.fill_(math.log(math.e - 1) if name.endswith("pace.bias") else 1.0)  # a pace of 1
        for module in self.modules():
            if isinstance(module, Convolution):
                module.weight.normal_(0.0, 0.2, generator=generator)
                module.weight.view(module.taps, -1)[0] += 1.0
            elif isinstance(module, Eigenvalues):
                _spread(module, self.context)

    def _deviation(self, name: str) -> float:
        """sqrt(2 / (5 * width)), less what is added to the stream so that it does not grow with depth."""
        deviation = math.sqrt(2 / (5 * self.config.width))
        return (
            deviation / math.sqrt(2 * self.config.layers) if name.endswith(("out.weight", "down.weight")) else deviation
        )


def _spread(eigenvalues: Eigenvalues, context: int) -> None:
    """Half-lives and frequencies over all scales of the context; in every head other half-lives meet a frequency."""
    heads, states = eigenvalues.shape[2:]
    device = eigenvalues.log_rate.device
    half_life = (2.0 * context) ** torch.frac(torch.arange(heads * states, device=device) * GOLDEN)
    slowest = 1 / (16.0 * context)  # of a turn a token
    place = torch.arange(states, device=device) / states
    eigenvalues.log_rate.copy_((math.log(2) / half_life).log())
    eigenvalues.log_frequency.copy_((0.25 * (slowest / 0.25) ** place).log().repeat(heads))


def _gain(log_decay: Tensor) -> Tensor:
    """sqrt(1 - |lambda|^2), for both parts: a state has the same size whether it remembers two tokens or a thousand."""
    gain = (-torch.expm1(2 * log_decay)).clamp(min=1e-12).sqrt()
    return torch.cat([gain, gain], -1)


def _same_document(doc_ids: Tensor, back: int) -> Tensor:
    """[B, L, 1], 1 where the token so far back is in the same document."""
    same = doc_ids[:, back:] == doc_ids[:, : doc_ids.shape[1] - back]
    return F.pad(same, (min(back, doc_ids.shape[1]), 0))[:, : doc_ids.shape[1], None].float()
