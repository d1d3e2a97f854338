"""Optimizers: what they take, where a step ends, which parameters never get a gradient."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .clock import OWN  # noqa: TID252
from .places import place  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import wrap  # noqa: TID252

GRADIENT_STEPS = frozenset(2**power for power in range(20)) | {0, 3, 5, 6}  # when gradients are looked for


def watch_optimizers(torch: Any, recording: Recording) -> None:
    from torch.optim.optimizer import (  # type: ignore[import-not-found, unused-ignore]
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    begun: list[float] = []
    clock, compiling = recording.clock, torch.compiler.is_compiling

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> Any:
        if compiling() or get_ident() != clock.thread:
            return None
        before = clock.enter(OWN)
        recording.guard("gradients", look_for_gradients, recording, optimizer)
        clock.leave(before)
        begun.append(clock.enter("optimizer"))
        return with_closure(recording, args, kwargs)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if compiling() or get_ident() != clock.thread or not begun:
            return
        recording.note(
            "optimizer", f"{type(optimizer).__name__}.step", clock.leave(begun.pop()), sys._getframe().f_back
        )
        recording.evaluating = False
        recording.step_ended(id(optimizer))

    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
    watch_construction(torch.optim.Optimizer, recording)
    wrap(recording, torch.nn.utils, "clip_grad_norm_", "optimizer", "clip_grad_norm_")
    wrap(recording, torch.optim.Optimizer, "zero_grad", "optimizer")


def with_closure(recording: Recording, args: Any, kwargs: Any) -> Any:
    """A closure is the loop's: Lightning runs the whole training step in one, and none of that is the optimizer."""
    if len(args) > 1 and callable(args[1]):
        return (args[0], in_the_loop(recording, args[1]), *args[2:]), kwargs
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": in_the_loop(recording, kwargs["closure"])}
    return None


def in_the_loop(recording: Recording, closure: Callable[[], Any]) -> Callable[[], Any]:
    clock = recording.clock

    @functools.wraps(closure)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = clock.enter("python")
        try:
            return closure(*args, **kwargs)
        finally:
            clock.leave(before)

    return call


def watch_construction(optimizer_class: Any, recording: Recording) -> None:
    original = optimizer_class.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        recording.guard("optimizers", describe, recording, self, sys._getframe().f_back)

    optimizer_class.__init__ = init


def describe(recording: Recording, optimizer: Any, frame: Any) -> None:
    groups = optimizer.param_groups
    recording.optimizers[id(optimizer)] = {
        "name": type(optimizer).__name__,
        "place": list(place(frame)),
        "parameters": sum(len(group["params"]) for group in groups),
        # None leaves the choice to torch, which is right.
        "one_by_one": any(group.get("foreach") is False and not group.get("fused") for group in groups),
    }
    recording.stepped_on[id(optimizer)] = [weakref.ref(group["params"][-1]) for group in groups if group["params"]]


def look_for_gradients(recording: Recording, optimizer: Any) -> None:
    """Which parameters never have one; looked for at steps further and further apart."""
    if recording.steps.count not in GRADIENT_STEPS:
        return
    for number, group in enumerate(optimizer.param_groups):
        for index, parameter in enumerate(group["params"]):
            if parameter.requires_grad:
                key = id(parameter)
                recording.tensors.setdefault(key, f"parameter {index} of group {number} {tuple(parameter.shape)}")
                if parameter.grad is not None:
                    recording.with_gradient.add(key)


HOOKS = {"torch": watch_optimizers}
