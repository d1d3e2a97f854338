"""Forward and backward passes, losses, evaluation, checkpoints."""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from typing import Any

from .batches import look_at  # noqa: TID252
from .clock import OWN  # noqa: TID252
from .compile_hooks import turn_to_the_optimizer  # noqa: TID252
from .places import caller, place  # noqa: TID252
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


def watch_torch(torch: Any, recording: Recording) -> None:
    recording.torch, recording.compiling = torch, torch.compiler.is_compiling
    watch_modules(torch, recording)
    watch_backward(torch, recording)
    for name in LOSSES:
        watch_loss(torch, recording, name)
    wrap(recording, torch, "save", "checkpoint")


def watch_modules(torch: Any, recording: Recording) -> None:
    """The call of a top-level module is a forward pass; modules inside it or in a compiled function are left alone."""
    original = torch.nn.Module.__call__
    compiling, grad = torch.compiler.is_compiling, torch.is_grad_enabled

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recording.inside or recording.running or compiling() or get_ident() != recording.clock.thread:
            return original(self, *args, **kwargs)
        recording.inside = True
        try:
            phase = begin_forward(recording, self, args, kwargs, grad())
        except Exception as error:
            phase = "forward"
            recording.miss("inputs of the model", error)
        before = recording.clock.enter(phase)
        if phase == "evaluation":
            recording.evaluation_goes_on()
        try:
            return original(self, *args, **kwargs)
        finally:
            seconds = recording.clock.leave(before)
            recording.inside = False
            recording.python_before = recording.clock.times["python"]
            recording.note(phase, type(self).__name__, seconds, sys._getframe().f_back)

    setattr(call, MARK, True)
    torch.nn.Module.__call__ = call


def begin_forward(recording: Recording, module: Any, args: Any, kwargs: Any, grad: bool) -> str:
    """The phase: without gradients, and outside of a backward pass, a model is evaluated."""
    if "backward" in recording.clock.stack:  # recomputed activations
        return "forward"
    if not grad:
        return "evaluation"
    recording.evaluating = False
    recording.computing = True
    before = recording.clock.enter(OWN)
    try:
        recording.learn_loop(caller(2))
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
        if compiling() or recording.inside or recording.running or get_ident() != recording.clock.thread:
            return original(*args, **kwargs)
        phase = "evaluation" if recording.evaluating else "forward"
        before = recording.clock.enter(phase)
        try:
            return original(*args, **kwargs)
        finally:
            recording.note(phase, name, recording.clock.leave(before), sys._getframe().f_back)

    setattr(functional, name, call)


def watch_backward(torch: Any, recording: Recording) -> None:
    original = torch.autograd.backward
    value_of = torch._C.TensorBase.item  # not the watched one
    compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or get_ident() != recording.clock.thread or "backward" in recording.clock.stack:
            return original(tensors, *args, **kwargs)
        before = recording.clock.enter("backward")
        try:
            return original(tensors, *args, **kwargs)
        finally:
            seconds = recording.clock.leave(before)
            recording.guard("losses", note_backward, recording, tensors, seconds, sys._getframe().f_back, value_of)
            turn_to_the_optimizer(recording)

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


def watch_safetensors(module: Any, recording: Recording) -> None:
    for name in ("save_file", "save_model"):
        wrap(recording, module, name, "checkpoint", f"safetensors.{name}")


HOOKS = {
    "torch": watch_torch,
    "safetensors.torch": watch_safetensors,
}
