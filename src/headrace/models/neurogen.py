"""NeuroGen: embed, brain, decode. Columns of spiking neurons, and no attention.

One token is one step of time. The brain is several modules; each turns its input into currents, lets leaky
integrate-and-fire neurons spike on them, and adds what the spikes bring to the stream:

    dendrites   d(t) = w0 x(t) + w1 x(t-1) + ...                  conduction delays, one filter for each channel
    current     I = W_in d
    membrane    u(t) = leak u(t-1) + sqrt(1 - leak^2) I(t)         unit variance for white input, whatever the leak
    threshold   b(t) = base + strength a(t),  a(t) = fade a(t-1) + (1 - fade) s(t - delay)
    spike       s(t) = 1 where u(t) >= b(t) and u(t) - b(t) is among the `winners` largest of its column, else 0
    output      W_out s

A spike does not reset the membrane: it raises the threshold, and does so `delay` tokens later. So the membrane is a
linear recurrence, solved for all tokens at once, and the thresholds of `delay` tokens follow from spikes before them:
the spikes of a row are found in blocks of `delay` tokens, exactly, where a delay of 1 would go token by token. The
gradient of a spike is that of a smooth step; everything else is differentiated as it stands, through time too.
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
from headrace.models.recompute import run_block
from headrace.models.scan import scan
from headrace.models.spikes import Adaptation, Rule, fire_by_token, fire_in_blocks

METHODS = ("blocks", "sequential")

# Parameters in all at a vocabulary of 32,768, as of the transformer of that name; tests/models/test_neurogen.py counts.
SIZES: dict[str, dict[str, Any]] = {
    "nano": {"width": 128, "modules": 4, "columns": 16, "context": 256},  # 5.3M, of them 1.1M not in the table
    "micro": {"width": 256, "modules": 6, "columns": 29, "context": 1024},  # 14.1M
    "tiny": {"width": 768, "modules": 12, "columns": 72, "context": 2048},  # 110M
    "small": {"width": 1024, "modules": 24, "columns": 98, "context": 4096},  # 343M
    "medium": {"width": 1536, "modules": 28, "columns": 146, "context": 16_384},  # 855M
    "large": {"width": 2048, "modules": 32, "columns": 196, "context": 32_768, "tied": False},  # 1.78B
    "xlarge": {"width": 3072, "modules": 28, "columns": 274, "context": 32_768, "tied": False},  # 3.22B
}


@dataclass(frozen=True, kw_only=True)
class NeuroGenConfig:
    vocab_size: int
    context: int  # what it is trained on; there is no longest sequence
    width: int
    modules: int
    columns: int  # in each module
    column_size: int = 64  # neurons
    winners: int = 8  # at most so many spike in a column at once
    taps: int = 4  # tokens that a dendrite hears
    delay: int = 32  # tokens from a spike to the rise of its threshold; 1 is the classical neuron
    surrogate: float = 1.0  # half-width of the smooth step whose slope is the gradient of a spike
    norm_eps: float = 1e-5
    tied: bool = True  # one table for tokens and output
    recompute: bool = False  # activations again in the backward pass: a third more work, memory of one module
    method: str = "blocks"  # sequential: token by token, the reference

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "width", "modules", "columns", "column_size", "winners", "taps", "delay"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: it must be at least 1.")
        if self.winners >= self.column_size:
            raise UsageError(
                f"winners {self.winners} in columns of {self.column_size} neurons: fewer must win than compete. "
                f"An eighth is usual."
            )
        if not self.surrogate > 0 or not self.norm_eps > 0:
            raise UsageError(f"surrogate {self.surrogate}, norm_eps {self.norm_eps}: they must be above 0.")
        if self.method not in METHODS:
            raise UsageError(f"method {self.method!r}: it must be one of {', '.join(METHODS)}.")

    @property
    def neurons(self) -> int:
        """In each module."""
        return self.columns * self.column_size


class Documents:
    """Where a packed row has, so many tokens back, still the same document; made once and shared by all modules."""

    def __init__(self, doc_ids: Tensor, lags: set[int]) -> None:
        length = doc_ids.shape[1]
        number = F.pad((doc_ids[:, 1:] != doc_ids[:, :-1]).cumsum(1), (1, 0))
        self.same = {lag: F.pad(number[:, lag:] == number[:, :-lag], (lag, 0))[:, :length, None] for lag in lags}


@dataclass
class State:
    """What a module carries from token to token: of constant size, however long the text. None before the first."""

    heard: Tensor | None = None  # [B, taps - 1, width] on the way to the dendrites
    membrane: Tensor | None = None  # [B, neurons]
    trace: Tensor | None = None  # [B, neurons] of spikes, which raises the thresholds
    late: Tensor | None = None  # [B, delay, neurons] spikes on the way to the trace

    def let_go(self) -> None:
        """Copies in place of views, which would keep the tensors of a whole prompt."""
        for name, value in vars(self).items():
            setattr(self, name, value.clone())


class CorticalModule(nn.Module):
    """`recompute` may be switched for each module, at any time. What is learned for each neuron is flat: no decay."""

    def __init__(self, config: NeuroGenConfig) -> None:
        super().__init__()
        self.config, self.recompute = config, config.recompute
        self.norm = nn.RMSNorm(config.width, config.norm_eps)
        self.dendrites = nn.Parameter(torch.empty(config.taps * config.width))
        self.inward = nn.Linear(config.width, config.neurons, bias=False)
        self.leak = nn.Parameter(torch.empty(config.neurons))  # before the sigmoid, as is `fade`
        self.base = nn.Parameter(torch.empty(config.neurons))
        self.strength = nn.Parameter(torch.empty(config.neurons))
        self.fade = nn.Parameter(torch.empty(config.neurons))
        self.outward = nn.Linear(config.neurons, config.width, bias=False)

    def forward(self, x: Tensor, documents: Documents | None, state: State | None) -> tuple[Tensor, Tensor]:
        """What is added to the stream, and for each neuron the share of tokens on which it fired."""
        cached, state = state is not None, state or State()
        current = self.inward(self._filtered(self.norm(x), documents, state))
        potential = self._integrated(_full(current), documents, state)
        spikes = self._fired(potential - _full(self.base), documents, state)
        if cached:
            state.let_go()
        return self.outward(spikes.to(current.dtype)), spikes.detach().mean((0, 1))

    def _filtered(self, x: Tensor, documents: Documents | None, state: State) -> Tensor:
        reach, length = self.config.taps - 1, x.shape[1]
        earlier = x.new_zeros(len(x), reach, x.shape[2]) if state.heard is None else state.heard
        row = torch.cat([earlier, x], 1)
        state.heard = row[:, length:]
        weights = self.dendrites.view(-1, x.shape[2]).unbind()
        total = x * weights[0]
        for lag in range(1, reach + 1):
            part = row[:, reach - lag : reach - lag + length] * weights[lag]
            total = total + (part if documents is None else part * documents.same[lag])
        return total

    def _integrated(self, current: Tensor, documents: Documents | None, state: State) -> Tensor:
        leak = torch.sigmoid(_full(self.leak))[None, None]
        kept = leak if documents is None else leak * documents.same[1]
        method = "auto" if self.config.method == "blocks" else "sequential"
        potential = scan(kept, current * ((1 - leak) * (1 + leak)).sqrt(), state.membrane, method=method)
        state.membrane = potential[:, -1]
        return potential

    def _fired(self, potential: Tensor, documents: Documents | None, state: State) -> Tensor:
        c = self.config
        adaptation = Adaptation(
            strength=_full(self.strength),
            fade=torch.sigmoid(_full(self.fade)),
            trace=torch.zeros_like(potential[:, 0]) if state.trace is None else state.trace,
            late=potential.new_zeros(len(potential), c.delay, c.neurons) if state.late is None else state.late,
            same=None if documents is None else documents.same[1],
            same_late=None if documents is None else documents.same[c.delay],
        )
        found = (fire_in_blocks if c.method == "blocks" else fire_by_token)(
            potential, adaptation, Rule(c.column_size, c.winners, c.surrogate)
        )
        state.trace, state.late = found.trace, found.late
        return found.spikes

    def initialise(self, generator: torch.Generator, deviation: float) -> None:
        c = self.config
        self.dendrites[c.width :] = 0.0
        self.inward.weight.normal_(0.0, 1 / math.sqrt(c.width), generator=generator)
        spikes = c.modules * c.columns * c.winners
        self.outward.weight.normal_(0.0, deviation / math.sqrt(spikes), generator=generator)
        _spread(self.leak, 0.1, 10.0, generator)
        _spread(self.fade, 10.0, 200.0, generator)


class NeuroGen(LanguageModel):
    config_type = NeuroGenConfig
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = SIZES
    config: NeuroGenConfig

    def __init__(self, config: NeuroGenConfig) -> None:
        super().__init__(config)
        self.brain = nn.ModuleList(CorticalModule(config) for _ in range(config.modules))
        # How much of the embedding and of each module before it reaches a module, from the second on, and the decoder.
        self.connections = nn.Parameter(torch.empty(sum(self._inputs)))
        self.norm = nn.RMSNorm(config.width, config.norm_eps)
        self.fired: Tensor | None = None  # [modules, neurons] share of tokens, of the last pass in training

    @property
    def _inputs(self) -> list[int]:
        return list(range(2, self.config.modules + 2))

    def hidden(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: list[State] | None = None) -> Tensor:
        if doc_ids is not None and cache and cache[0].membrane is not None:
            raise UsageError("doc_ids with a cache: documents are kept apart in training, not in generation.")
        lags = {*range(1, self.config.taps), 1, self.config.delay}
        documents = None if doc_ids is None else Documents(doc_ids, lags)
        x = self.embedding(tokens)
        outputs, shares = [x], []
        connections = torch.split(self.connections, self._inputs)
        for i, module in enumerate(self.brain):
            output, share = run_block(module, x, documents, cache=cache[i] if cache else None)
            outputs.append(output)
            shares.append(share)
            x = sum(weight * output for weight, output in zip(connections[i].unbind(), outputs, strict=True))
        if self.training:
            self.fired = torch.stack(shares)
        return self.norm(x)  # type: ignore[no-any-return]

    def new_cache(self, batch: int, length: int) -> list[State]:
        return [State() for _ in self.brain]

    def metrics(self) -> dict[str, Tensor]:
        """Of the last pass in training: spikes per neuron and token, and neurons that did not fire on any token."""
        if self.fired is None:
            return {}
        rate = self.fired.mean()
        return {"firing_rate": rate, "sparsity": 1 - rate, "silent_neurons": (self.fired == 0).float().mean()}

    @torch.no_grad()
    def initialise(self, seed: int = 0) -> None:
        """Tables as in the transformer: the first loss is ln(vocabulary) + 0.2. Currents have unit variance.

        All modules together add as much as the embedding. Membranes forget within 0.1 to 10 tokens, traces within
        10 to 200, spread evenly over the logarithm.
        """
        device = self.embedding.weight.device
        if device.type == "meta":
            return
        c = self.config
        generator = torch.Generator(device).manual_seed(seed)
        deviation = math.sqrt(2 / (5 * c.width))
        for parameter in self.parameters():
            parameter.fill_(1.0)
        for table in [self.embedding.weight] if c.tied else [self.embedding.weight, self.output_weight]:
            table.normal_(0.0, deviation, generator=generator)
        # What is embedded reaches the decoder through the modules: as the table it is decoded by, it would say that
        # every token follows itself, and with few ids the first loss would be up to 2.8 above that of guessing.
        self.connections[-self._inputs[-1]] = 0.0
        for module in self.brain:
            assert isinstance(module, CorticalModule)
            module.initialise(generator, deviation)


def _spread(parameter: Tensor, least: float, most: float, generator: torch.Generator) -> None:
    """exp(-1 / tokens) before the sigmoid, of times spread evenly over the logarithm."""
    tokens = least * (most / least) ** torch.empty_like(parameter).uniform_(generator=generator)
    parameter.copy_(-torch.log(torch.expm1(1 / tokens)))


def _full(x: Tensor) -> Tensor:
    """Potentials and thresholds are float32 where the rest is of half precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
