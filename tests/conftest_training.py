"""What the tests of training share: a small language model, and a guard against reading a value on the host."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from headrace.training import Trainer

# Tensors are tiny here: threads that wait for each other cost more than they do, above all on a busy machine.
torch.set_num_threads(1)

VOCABULARY, WIDTH, LENGTH = 64, 32, 16
aten = torch.ops.aten
# All of these make the host wait for a GPU: the first six bring a value or a shape to it, the last takes one from it.
HOST_READS = {
    aten._local_scalar_dense.default,
    aten.is_nonzero.default,
    aten.nonzero.default,
    aten.equal.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.lift_fresh.default,
}


SYNCS = ("_local_scalar_dense", "is_nonzero", "nonzero", "item", "equal", "masked_select", "_unique2")


class ForbidHostSync(TorchDispatchMode):
    """Fails on the first operation that would make the host wait, were the tensors on a GPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func not in HOST_READS, f"{func} makes the host wait for the device"
        return func(*args, **(kwargs or {}))


class CountSyncs(TorchDispatchMode):
    """Operations that make the host wait for a number."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in SYNCS:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


class SmallModel(nn.Module):
    """Embedding, one attention block, head: every kind of parameter that an optimizer tells apart."""

    def __init__(self, *, tied: bool = False, width: int = WIDTH, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        q, k, v = self.attention(self.norm(x)).chunk(3, dim=-1)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        x = x + self.down(nn.functional.gelu(self.up(x)))
        logits: Tensor = self.head(x)
        return logits


def small_model(**kwargs: Any) -> SmallModel:
    torch.manual_seed(0)
    return SmallModel(**kwargs)


def batch(seed: int = 1, vocabulary: int = VOCABULARY) -> Tensor:
    """Rows that count upwards from a random start, so there is something to learn."""
    start = torch.randint(vocabulary, (8, 1), generator=torch.Generator().manual_seed(seed))
    return (start + torch.arange(LENGTH + 1)) % vocabulary


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def flat_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Every entry of the optimizer's state, copied, under 'parameter/key'."""
    return {
        f"{i}/{key}": value.clone() if isinstance(value, Tensor) else value
        for i, state in enumerate(optimizer.state.values())
        for key, value in state.items()
    }


def count_syncs_in_steps(trainer: Trainer) -> CountSyncs:
    """Count what the steps of its next run ask for."""
    counted = CountSyncs()
    whole_step = trainer._one_step

    def one_step(batches: Any) -> None:
        with counted:
            whole_step(batches)

    trainer._one_step = one_step  # type: ignore[method-assign]
    return counted
