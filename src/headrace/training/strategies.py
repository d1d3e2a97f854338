"""How a model is spread over the ranks: whole on each of them (DDP), or in shards (FSDP2)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from headrace.errors import UsageError
from headrace.training.config import TrainConfig
from headrace.training.parallel import DDP, FSDP, Group

Place = Callable[[str, torch.Size, torch.dtype], Tensor]


def build_strategy(model: nn.Module, group: Group, device: torch.device, config: TrainConfig) -> Strategy:
    if group.kind == FSDP:
        _check_sharded(config)
        return Sharded(model, group, device)
    return Replicated(model, group, device) if group.kind == DDP else Strategy(model, group, device)


def _check_sharded(config: TrainConfig) -> None:
    if config.optimizer != "adamw":
        raise UsageError(
            f"--optimizer {config.optimizer} needs whole matrices, and --parallel fsdp cuts them. Use --optimizer "
            f"adamw, or --parallel ddp."
        )
    if config.precision == "fp16":
        raise UsageError("--mixed-precision fp16 with --parallel fsdp: the loss scale knows no shards. Use bf16.")
    if config.compile is True:
        raise UsageError("--compile with --parallel fsdp is not supported. Leave it out, or use --parallel ddp.")


class Strategy:
    """The model on one device, for one process."""

    sharded = False  # a forward pass then needs all ranks

    def __init__(self, model: nn.Module, group: Group, device: torch.device) -> None:
        self.model, self._group = model.to(device), group
        self.forward: nn.Module = self.model  # what to call in training

    def part(self, *, last: bool) -> AbstractContextManager[Any]:
        """Around one forward and backward pass; gradients are exchanged in the last one of a step alone."""
        return nullcontext()

    def weighted(self, loss: Tensor, mask: Tensor | None) -> Tensor:
        """A mean over this rank's tokens, so that the mean over ranks is that over all tokens which count."""
        if mask is None or self._group.world_size == 1:
            return loss
        count = mask.sum().to(loss.dtype)
        everywhere = self._group.total(count.clone()).clamp(min=1)
        return loss * (count * self._group.world_size / everywhere)

    def compile(self, asked: bool | str) -> bool | str:
        return asked

    def load(self, model_state: dict[str, Tensor], optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        self.model.load_state_dict(model_state)
        optimizer.load_state_dict(state)


class Replicated(Strategy):
    """DistributedDataParallel: gradients are averaged while the backward pass goes on."""

    def __init__(self, model: nn.Module, group: Group, device: torch.device) -> None:
        super().__init__(model, group, device)
        self._ddp = nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.forward = self._ddp

    def part(self, *, last: bool) -> AbstractContextManager[Any]:
        return nullcontext() if last else self._ddp.no_sync()


class Sharded(Strategy):
    """FSDP2: each rank holds its part of every tensor; a block is whole only while it is computed."""

    sharded = True

    def __init__(self, model: nn.Module, group: Group, device: torch.device) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        self._group = group
        mesh = init_device_mesh(device.type, (group.world_size,))
        for block in _blocks(model):
            fully_shard(block, mesh=mesh)  # moves it to the device, so the whole model is never there
        fully_shard(model, mesh=mesh)
        self.model = self.forward = model
        self._fsdp: Any = model
        for method in ("evaluate", "logits"):
            if hasattr(model, method):
                register_fsdp_forward_method(model, method)

    def part(self, *, last: bool) -> AbstractContextManager[Any]:
        self._fsdp.set_requires_gradient_sync(last)
        return nullcontext()

    def compile(self, asked: bool | str) -> bool | str:
        return False

    def load(self, model_state: dict[str, Tensor], optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Tensors are shards already, or whole ones of which this rank takes its part."""
        own = self.model.state_dict()
        self.model.load_state_dict({name: _like(own.get(name), tensor) for name, tensor in model_state.items()})
        parameters = optimizer_parameters(optimizer)
        moments = {
            index: {key: _like(parameters[index], value) for key, value in entry.items()}
            for index, entry in state["state"].items()
        }
        optimizer.load_state_dict({**state, "state": moments})

    def place(self, optimizer: torch.optim.Optimizer) -> Place:
        """Where to read a tensor of a checkpoint to: a shard of the same layout as this model's own."""
        own, parameters = self.model.state_dict(), optimizer_parameters(optimizer)

        def shard(name: str, size: torch.Size, dtype: torch.dtype) -> Tensor:
            kind, _, rest = name.partition(".")
            like = own.get(rest) if kind == "model" else parameters[int(rest.partition(".")[0])]
            if like is None or like.shape != size:
                return torch.empty(size, dtype=dtype)
            return torch.empty_like(like.detach(), dtype=dtype)

        return shard


def optimizer_parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """In the order of the numbers that a state_dict gives them."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _blocks(model: nn.Module) -> list[nn.Module]:
    """What is computed one after the other: the entries of lists of modules, the outermost ones."""
    found: list[nn.Module] = []
    for child in model.children():
        found += list(child) if isinstance(child, nn.ModuleList) else _blocks(child)
    return found


def _like(own: Tensor | None, value: Any) -> Any:
    from torch.distributed.tensor import DTensor, distribute_tensor

    whole = isinstance(value, Tensor) and not isinstance(value, DTensor)
    if not whole or not isinstance(own, DTensor) or own.shape != value.shape:
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements)
