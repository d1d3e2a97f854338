"""Forward, backward and optimizer, and where a step ends."""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from typing import Any

from .batches import look_at  # noqa: TID252
from .places import place  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import MARK, wrap  # noqa: TID252

# Losses are often taken outside of the model, by functions.
LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)
GRADIENT_STEPS = frozenset(2**power for power in range(20)) | {0, 3, 5, 6}  # when gradients are looked for


def watch_torch(torch: Any, recording: Recording) -> None:
    recording.torch = torch
    watch_modules(torch, recording)
    watch_backward(torch, recording)
    watch_optimizers(torch, recording)
    for name in LOSSES:
        watch_loss(torch, recording, name)
    wrap(recording, torch, "save", "checkpoint")
    wrap(recording, torch.nn.utils, "clip_grad_norm_", "optimizer", "clip_grad_norm_")
    wrap(recording, torch.optim.Optimizer, "zero_grad", "optimizer")


def watch_modules(torch: Any, recording: Recording) -> None:
    """The call of a top-level module is a forward pass; modules inside it take the first way out."""
    original = torch.nn.Module.__call__
    compiling, grad = torch.compiler.is_compiling, torch.is_grad_enabled

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recording.inside or compiling() or get_ident() != recording.clock.thread:
            return original(self, *args, **kwargs)
        recording.inside = True
        try:
            phase = begin_forward(recording, self, args, kwargs, grad())
        except Exception as error:
            phase = "forward"
            recording.miss("inputs of the model", error)
        before = recording.clock.enter(phase)
        try:
            return original(self, *args, **kwargs)
        finally:
            seconds = recording.clock.leave(before)
            recording.inside = False
            recording.note(phase, type(self).__name__, seconds, sys._getframe(1))

    setattr(call, MARK, True)
    torch.nn.Module.__call__ = call
    recording.skipped_by_dynamo.append(getattr(call, "__code__"))  # noqa: B009


def begin_forward(recording: Recording, module: Any, args: Any, kwargs: Any, grad: bool) -> str:
    """The phase: without gradients, and outside of a backward pass, a model is evaluated."""
    if "backward" in recording.clock.stack:  # recomputed activations
        return "forward"
    recording.evaluating = not grad
    if not grad:
        return "evaluation"
    recording.computing = True
    before = recording.clock.enter("probe")
    try:
        recording.learn_loop(sys._getframe(2))
        if id(module) not in recording.modules:
            learn_names(recording, module)
        look_at(recording, args, kwargs)
    finally:
        recording.clock.leave(before)
    return "forward"


def learn_names(recording: Recording, module: Any) -> None:
    recording.modules.add(id(module))
    for name, parameter in module.named_parameters():
        recording.names.setdefault(id(parameter), name.removeprefix("_orig_mod.").removeprefix("module."))
        recording.cuda = recording.cuda or parameter.is_cuda


def watch_loss(torch: Any, recording: Recording, name: str) -> None:
    functional = torch.nn.functional
    original = getattr(functional, name)
    compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if recording.inside or compiling() or get_ident() != recording.clock.thread:
            return original(*args, **kwargs)
        phase = "evaluation" if recording.evaluating else "forward"
        before = recording.clock.enter(phase)
        try:
            return original(*args, **kwargs)
        finally:
            recording.note(phase, name, recording.clock.leave(before), sys._getframe(1))

    setattr(functional, name, call)


def watch_backward(torch: Any, recording: Recording) -> None:
    original = torch.autograd.backward
    value_of = torch._C.TensorBase.item  # not the watched one

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if get_ident() != recording.clock.thread or "backward" in recording.clock.stack:
            return original(tensors, *args, **kwargs)
        before = recording.clock.enter("backward")
        try:
            return original(tensors, *args, **kwargs)
        finally:
            seconds = recording.clock.leave(before)
            note_backward(recording, tensors, seconds, sys._getframe(1), value_of)

    torch.autograd.backward = backward


def note_backward(recording: Recording, tensors: Any, seconds: float, frame: Any, value_of: Any) -> None:
    recording.note("backward", "backward", seconds, frame)
    recording.steps.backwards += 1
    recording.computing = recording.evaluating = False
    loss = tensors[0] if isinstance(tensors, (tuple, list)) and tensors else tensors
    # Reading a loss on a GPU would be the very sync that is looked for.
    if getattr(loss, "is_cpu", False) and loss.numel() == 1:
        recording.saw_loss(float(value_of(loss)))
        if recording.loss_place is None:
            recording.loss_place = list(place(frame))


def watch_optimizers(torch: Any, recording: Recording) -> None:
    from torch.optim.optimizer import (  # type: ignore[import-not-found, unused-ignore]
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    begun: list[float] = []

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if get_ident() == recording.clock.thread:
            before = recording.clock.enter("probe")
            recording.guard("gradients", look_for_gradients, recording, optimizer)
            recording.clock.leave(before)
            begun.append(recording.clock.enter("optimizer"))

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if get_ident() == recording.clock.thread and begun:
            seconds = recording.clock.leave(begun.pop())
            recording.note("optimizer", f"{type(optimizer).__name__}.step", seconds, sys._getframe(1))
            if recording.threads is None:
                recording.threads = torch.get_num_threads()
            recording.evaluating = False
            recording.step_ended()

    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
    watch_construction(torch.optim.Optimizer, recording)


def watch_construction(optimizer_class: Any, recording: Recording) -> None:
    original = optimizer_class.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        recording.guard("optimizers", describe, recording, self, sys._getframe(1))

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


def leave_our_frames(module: Any, recording: Recording) -> None:
    """torch.compile begins with the frames of the user's module, not with those of the probe."""
    for code in recording.skipped_by_dynamo:
        module.skip_code(code)


def watch_safetensors(module: Any, recording: Recording) -> None:
    for name in ("save_file", "save_model"):
        wrap(recording, module, name, "checkpoint", f"safetensors.{name}")


HOOKS = {
    "torch": watch_torch,
    "torch._dynamo.eval_frame": leave_our_frames,
    "safetensors.torch": watch_safetensors,
}
