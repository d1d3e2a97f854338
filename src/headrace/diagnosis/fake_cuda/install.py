"""Everything that is put in torch's place while a script runs, put there and taken away again."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from headrace.diagnosis.fake_cuda import runtime
from headrace.diagnosis.fake_cuda.checkpoints import load_with, save_with
from headrace.diagnosis.fake_cuda.functions import FakeFunctions, tolist_with
from headrace.diagnosis.fake_cuda.guard import install_guard
from headrace.diagnosis.fake_cuda.modules import Moving, backward_with, grad_with
from headrace.diagnosis.fake_cuda.pinned import is_pinned, pin_memory
from headrace.diagnosis.fake_cuda.record import Recorder
from headrace.diagnosis.fake_cuda.tensors import FakeCuda


@contextmanager
def counted_steps(recorder: Recorder) -> Iterator[None]:
    handle = register_optimizer_step_post_hook(recorder.after_step)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def fake_cuda(recorder: Recorder) -> Iterator[None]:
    install_guard()
    dispatch = FakeCuda(recorder)
    before = torch._C._only_lift_cpu_tensors()
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, TORCHDYNAMO_DISABLE="1"))
        for holder, name, value in _replacements(recorder):
            stack.enter_context(mock.patch.object(holder, name, value))
        stack.enter_context(mock.patch.object(threading.Thread, "run", _run_with_modes(recorder, dispatch)))
        stack.enter_context(counted_steps(recorder))
        stack.callback(torch._C._set_only_lift_cpu_tensors, before)
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(x, device="cuda") as a copy that can be seen
        stack.enter_context(dispatch)
        stack.enter_context(FakeFunctions(recorder))
        yield


def _replacements(recorder: Recorder) -> Iterator[tuple[Any, str, Any]]:
    cuda = runtime.cuda_names(recorder)
    for name, value in cuda.items():
        for holder in (torch.cuda, torch.cuda.random, torch.cuda.memory):
            if hasattr(holder, name):
                yield holder, name, value
    for name, value in runtime.accelerator_names(cuda).items():
        if hasattr(torch.accelerator, name):
            yield torch.accelerator, name, value
    moving = Moving()
    yield torch.nn.Module, "_apply", lambda module, move, recurse=True: moving.apply(module, move, recurse)
    yield torch.nn.Module, "compile", lambda module, *args, **kwargs: None
    yield torch, "compile", _not_compiled
    yield torch.autograd, "backward", backward_with(torch.autograd.backward)
    yield torch.autograd, "grad", grad_with(torch.autograd.grad)
    yield torch.amp.GradScaler, "_maybe_opt_step", runtime.maybe_step
    yield FakeTensor, "tolist", tolist_with(recorder)
    yield torch.Tensor, "pin_memory", pin_memory
    yield torch.Tensor, "is_pinned", is_pinned
    yield torch.Tensor, "record_stream", lambda tensor, stream: None
    yield torch.backends.cudnn, "is_acceptable", lambda tensor: False
    yield torch, "load", load_with(recorder, torch.load)
    yield torch, "save", save_with(recorder)
    if importlib.util.find_spec("safetensors"):
        yield import_module("safetensors.torch"), "save_file", save_with(recorder)


def _not_compiled(model: Any = None, *args: Any, **kwargs: Any) -> Any:
    return model if model is not None else lambda function: function


def _run_with_modes(recorder: Recorder, dispatch: FakeCuda) -> Callable[[threading.Thread], None]:
    """Modes hold for one thread; a thread that the script starts must see the same device."""
    run = threading.Thread.run

    def run_with_modes(thread: threading.Thread) -> None:
        with dispatch, FakeFunctions(recorder):
            run(thread)

    return run_with_modes
