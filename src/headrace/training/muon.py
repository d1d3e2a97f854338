"""Muon for the hidden matrices and AdamW for everything else, as one optimizer with one state_dict.

Muon steps along the nearest orthogonal matrix to the momentum. Such an update has RMS 1/sqrt(larger side), so it is
scaled by 0.2 * sqrt(larger side): 0.2 is about what AdamW's updates have (Liu et al. 2025, arXiv 2502.16982), and one
learning rate and one weight decay serve both.

torch.optim.Muon is not used. It came with torch 2.9 and Headrace takes 2.6, so there would be two ways to the same
result; it orthogonalises in bf16 on CPUs too, one matrix at a time, and it cannot leave out a step without asking the
host. tests/training/test_muon.py holds the update against torch's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from headrace.training.skipping import kept_if

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's quintic: steep at 0, and 5 rounds bring values into about 0.7-1.2
ROUNDS = 5
RMS_OF_ADAMW = 0.2
# Matrices of one shape are orthogonalised together: 15 kernels for all of them, not for each. On a CPU it wins nothing
# (24 matrices of 384 by 384 to 1,536: 1.85 s together, 1.67 s apart). The limit keeps a stack below 256 MB in bf16.
STACKED_ELEMENTS = 1 << 27


def orthogonalise(matrices: Tensor) -> Tensor:
    """Each matrix of a stack with its singular values brought near 1."""
    a, b, c = NEWTON_SCHULZ
    tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Groups with `orthogonal=True` get Muon, the others fused AdamW.

    `found_inf`, a tensor that is 1 for a step to leave out, works as it does in torch's fused optimizers.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        fused: bool,
        momentum: float = 0.95,
    ) -> None:
        rest = [group for group in groups if not group.get("orthogonal")]
        matrices = [{"momentum": momentum, **group} for group in groups if group.get("orthogonal")]
        self._adamw = torch.optim.AdamW(rest, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=fused)
        super().__init__([*matrices, *self._adamw.param_groups], {"lr": lr, "weight_decay": weight_decay})
        self._share_state()

    def _share_state(self) -> None:
        """AdamW works on this optimizer's own groups and state, so there is one of each to set, save and load."""
        self._adamw.param_groups = [group for group in self.param_groups if not group.get("orthogonal")]
        self._adamw.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share_state()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found_inf = getattr(self, "found_inf", None)
        for group in self.param_groups:
            if group.get("orthogonal"):
                for stack in _stacks(group["params"]):
                    self._update(stack, group, found_inf)
        self._step_adamw(found_inf)
        return loss

    def _step_adamw(self, found_inf: Tensor | None) -> None:
        if found_inf is None:
            self._adamw.step()
            return
        self._adamw.found_inf = found_inf  # type: ignore[attr-defined]
        try:
            self._adamw.step()
        finally:
            del self._adamw.found_inf  # type: ignore[attr-defined]

    def _update(self, params: list[Tensor], group: dict[str, Any], found_inf: Tensor | None) -> None:
        buffers = [self._momentum(p) for p in params]
        grads = [p.grad for p in params if p.grad is not None]
        with kept_if(found_inf, [*params, *buffers]):
            torch._foreach_lerp_(buffers, grads, 1 - group["momentum"])
            ahead = torch._foreach_lerp(grads, buffers, group["momentum"])  # Nesterov
            rows, columns = params[0].shape
            scale = -group["lr"] * RMS_OF_ADAMW * max(rows, columns) ** 0.5
            update = orthogonalise(torch.stack(ahead).to(_working_type(params[0])))
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, list(update.to(params[0].dtype).unbind()), alpha=scale)

    def _momentum(self, p: Tensor) -> Tensor:
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(p)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


def _working_type(p: Tensor) -> torch.dtype:
    """bf16 is enough for five rounds, and fast on GPUs; CPUs keep fp32, so that their kind does not change a run."""
    return torch.float32 if p.device.type == "cpu" else torch.bfloat16


def _stacks(params: list[Tensor]) -> Iterator[list[Tensor]]:
    """Parameters that have a gradient, those of one shape and type together."""
    alike: defaultdict[tuple[Any, ...], list[Tensor]] = defaultdict(list)
    for p in params:
        if p.grad is not None:
            alike[p.shape, p.dtype, p.device].append(p)
    for same in alike.values():
        size = max(1, STACKED_ELEMENTS // max(1, same[0].numel()))
        yield from (same[i : i + size] for i in range(0, len(same), size))
