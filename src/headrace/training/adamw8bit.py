"""bitsandbytes' 8-bit AdamW, without its waits for the GPU and with steps that can be left out.

Import this module only where bitsandbytes is asked for: it is an optional package.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from headrace.training.skipping import kept_if


def _base() -> Any:
    """The package's class, without its warning on import about a kernel for 4-bit inference, which is not used here."""
    log = logging.getLogger("bitsandbytes")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        return import_module("bitsandbytes.optim").AdamW8bit
    finally:
        log.setLevel(level)


Base: Any = _base()


class AdamW8bit(Base):  # type: ignore[misc]
    """Groups with `optim_bits=32` keep whole moments; parameters below 4,096 elements do so in any group."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """The package's own step calls cuda.synchronize() after every parameter, which only paged state needs."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found_inf = getattr(self, "found_inf", None)
        for gindex, group in enumerate(self.param_groups):
            for pindex, p in enumerate(group["params"]):
                if p.grad is not None:
                    self._step_one(group, p, gindex, pindex, found_inf)
        return loss

    def _step_one(self, group: dict[str, Any], p: Tensor, gindex: int, pindex: int, found_inf: Tensor | None) -> None:
        if not self.state[p]:
            self.init_state(group, p, gindex, pindex)
        # One parameter at a time, so what is kept aside is never more than the largest one with its moments. The step
        # count is a number on the host and counts a step that was left out; it only corrects the bias of early moments.
        with kept_if(found_inf, [p, *_moments(self.state[p])]):
            self.update_step(group, p, gindex, pindex)

    def get_config(self, gindex: int, pindex: int, group: dict[str, Any]) -> dict[str, Any]:
        """Bits per group; the package's way is a manager that is global to the process."""
        config: dict[str, Any] = super().get_config(gindex, pindex, group)
        config["optim_bits"] = group.get("optim_bits", config["optim_bits"])
        return config


def _moments(state: dict[str, Any]) -> list[Tensor]:
    return [state[key] for key in ("state1", "state2", "absmax1", "absmax2") if key in state]
