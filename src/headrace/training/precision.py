"""How numbers are kept in forward, backward and step: fp32, bf16 or fp16, and gradients that are not finite.

Nothing here makes the host wait. The norm of the gradients stays on the device, and a step whose gradients are not
finite is left out there too: the flag goes to the optimizer as `found_inf`, the way torch's GradScaler hands it over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from headrace.errors import UsageError
from headrace.training.optimizer import FUSED_DEVICES

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# A step of a 14M transformer on one core, oneDNN held to each set of instructions (ONEDNN_MAX_CPU_ISA).
BF16_ON_CPU = (
    "bf16 on a CPU was 14x slower than fp32 with AVX2, 2.6x slower with AVX512, 1.3-1.8x faster with AVX512-BF16"
)


def build_precision(
    name: str,
    device: torch.device | str,
    *,
    skip_nonfinite: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> Precision:
    """The precision of this name, refused where the device cannot do it."""
    device = torch.device(device)
    if name not in TYPES:
        raise UsageError(f"precision {name!r} is not one of {', '.join(TYPES)}")
    if name == "fp16" and device.type != "cuda":
        raise UsageError(f"fp16 needs a CUDA device and this run is on {device.type}. Use --mixed-precision fp32.")
    if name == "bf16" and device.type == "cuda" and not has_bf16(device):
        raise UsageError("this GPU has no bf16 arithmetic. Use --mixed-precision fp16.")
    if name == "bf16" and device.type == "cpu":
        report(BF16_ON_CPU)
    scaler = torch.amp.GradScaler(device.type) if name == "fp16" else None
    return Precision(dtype=TYPES[name], device=device, scaler=scaler, skip_nonfinite=skip_nonfinite)


def default_precision(device: torch.device | str) -> str:
    """bf16 on GPUs that have it and fp32 elsewhere, so that a run on a CPU does not depend on the CPU's kind."""
    device = torch.device(device)
    return "bf16" if device.type == "cuda" and has_bf16(device) else "fp32"


def has_bf16(device: torch.device) -> bool:
    """bf16 in hardware. torch also says yes for older GPUs, which emulate it slowly."""
    return torch.cuda.get_device_capability(device) >= (8, 0)


@dataclass(kw_only=True)
class Precision:
    """Forward under `autocast()`, then `backward(loss)`, then `clip_and_step(...)` once all micro-batches are in."""

    dtype: torch.dtype
    device: torch.device
    scaler: torch.amp.GradScaler | None = None
    skip_nonfinite: bool = True

    def autocast(self) -> AbstractContextManager[Any]:
        if self.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def backward(self, loss: Tensor) -> None:
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]

    def clip_and_step(
        self, optimizer: torch.optim.Optimizer, params: Iterable[Tensor], max_norm: float | None
    ) -> Tensor:
        """Step with gradients cut to this norm, and return the norm they had: not finite means a step left out."""
        params = [p for p in params if p.grad is not None]
        if self.scaler is not None:
            self.scaler.unscale_(optimizer)
        norm = get_total_norm([p.grad for p in params if p.grad is not None])
        if hasattr(norm, "full_tensor"):  # of shards: the norm over all ranks, which all of them get
            norm = norm.full_tensor()
        if max_norm:
            clip_grads_with_norm_(params, max_norm, norm)
        if self.scaler is not None or self.skip_nonfinite:
            self._step_if_finite(optimizer, norm)
        else:
            optimizer.step()
        if self.scaler is not None:
            self.scaler.update()
        return norm

    def _step_if_finite(self, optimizer: torch.optim.Optimizer, norm: Tensor) -> None:
        found_inf = torch.logical_not(torch.isfinite(norm)).float()
        if self.device.type not in FUSED_DEVICES:
            if not found_inf.item():  # no kernel there takes the flag, so the host has to wait and choose
                optimizer.step()
            return
        optimizer.found_inf = found_inf  # type: ignore[attr-defined]
        try:
            optimizer.step()
        finally:
            del optimizer.found_inf  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """The loss scale of fp16; empty otherwise."""
        return {} if self.scaler is None else self.scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.scaler is not None and state:
            self.scaler.load_state_dict(state)
