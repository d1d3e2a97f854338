"""One optimizer for a model: which parameters decay, which get Muon, and which kernel does the work.

The learning rate is a Python float in `param_groups`, set before each step: the fused kernels take it as an argument,
so nothing is copied to the device and nobody waits. A tensor is only needed when the optimizer's own step is captured
in a graph, which is not done here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from headrace.errors import MissingDependency, UsageError
from headrace.models.base import LanguageModel
from headrace.training.muon import Muon

NAMES = ("adamw", "adamw8bit", "muon")
# Where torch has a fused AdamW that obeys `found_inf`. The one for MPS ignored it until June 2026 (pytorch 186360).
# On a CPU, a step of 13.8 million parameters in 51 tensors took 15.5 ms fused, 69 ms one by one and 100 ms with
# foreach, whose temporaries do not fit into the cache.
FUSED_DEVICES = ("cpu", "cuda", "xpu")


@dataclass(frozen=True, kw_only=True)
class ParameterKinds:
    """The trainable parameters of a model, each once, by what an optimizer does with them."""

    hidden: list[nn.Parameter] = field(default_factory=list)  # matrices between two layers
    other: list[nn.Parameter] = field(default_factory=list)  # the output head, and tensors of three sides and more
    embeddings: list[nn.Parameter] = field(default_factory=list)
    vectors: list[nn.Parameter] = field(default_factory=list)  # norms, biases, scalars


def build_optimizer(
    model: nn.Module,
    *,
    name: str,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.95),
    eps: float = 1e-8,
    weight_decay: float = 0.1,
    device: torch.device | str,
) -> torch.optim.Optimizer:
    """The optimizer of this name over the model's trainable parameters, which are on the device already."""
    if name not in NAMES:
        raise UsageError(f"optimizer {name!r} is not one of {', '.join(NAMES)}")
    kinds = sort_parameters(model)
    fused = torch.device(device).type in FUSED_DEVICES
    settings: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
    if name == "adamw8bit":
        return _adamw8bit(_groups(kinds), settings)
    if name == "muon":
        if not kinds.hidden:
            raise UsageError("Muon needs hidden matrices, and this model has none. Use --optimizer adamw.")
        return Muon(_muon_groups(kinds), fused=fused, **settings)
    return torch.optim.AdamW(_groups(kinds), fused=fused, **settings)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def sort_parameters(model: nn.Module) -> ParameterKinds:
    kinds = ParameterKinds()
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    head = _head(model)
    for p in model.parameters():
        if p.requires_grad:
            _kind_of(p, kinds, embeddings, head).append(p)
    return kinds


def _kind_of(p: nn.Parameter, kinds: ParameterKinds, embeddings: set[int], head: int | None) -> list[nn.Parameter]:
    if id(p) in embeddings:
        return kinds.embeddings
    if p.ndim < 2:
        return kinds.vectors
    return kinds.hidden if p.ndim == 2 and id(p) != head else kinds.other


def _head(model: nn.Module) -> int | None:
    """The output weight of Headrace's models. Of any other, the last linear layer if it has an embedding's shape.

    The shape alone would not do: a feed-forward layer may have as many rows as there are tokens.
    """
    if isinstance(model, LanguageModel):
        return id(model.output_weight)
    shapes = {m.weight.shape for m in model.modules() if isinstance(m, nn.Embedding)}
    linear = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    return id(linear[-1]) if linear and linear[-1].shape in shapes else None


def _groups(kinds: ParameterKinds) -> list[dict[str, Any]]:
    """Matrices decay. Vectors do not, and embeddings do not: a row's gradient is 0 in every step without its token,
    so decay would shrink rare tokens for no reason but their rarity. Their moments stay whole in 8-bit AdamW too.
    """
    return [
        {"params": [*kinds.hidden, *kinds.other]},
        {"params": kinds.embeddings, "weight_decay": 0.0, "optim_bits": 32},
        {"params": kinds.vectors, "weight_decay": 0.0},
    ]


def _muon_groups(kinds: ParameterKinds) -> list[dict[str, Any]]:
    return [
        {"params": kinds.hidden, "orthogonal": True},
        {"params": kinds.other},
        {"params": [*kinds.embeddings, *kinds.vectors], "weight_decay": 0.0},
    ]


def _adamw8bit(groups: list[dict[str, Any]], settings: dict[str, Any]) -> torch.optim.Optimizer:
    try:
        from headrace.training.adamw8bit import AdamW8bit
    except ImportError as error:
        raise MissingDependency("bitsandbytes", "8bit", "the 8-bit optimizer") from error
    optimizer: torch.optim.Optimizer = AdamW8bit(groups, **settings)
    return optimizer
