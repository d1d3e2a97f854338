"""torch.compile that gives up with a reason: the model then runs as it is.

torch.compile is lazy, so what is missing (a C++ compiler, Triton, an operation that dynamo cannot trace) shows only in
the first forward or the first backward. `run_guarded` runs that first step, and again without compiling if it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from headrace.errors import UsageError
from headrace.training.randomness import restore_rng, rng_state

T = TypeVar("T")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
Report = Callable[[str], None]


def maybe_compile(
    model: nn.Module,
    *,
    enabled: bool | str,
    report: Report,
    mode: str = "default",
    backend: str | Callable[..., Any] = "inductor",
) -> nn.Module:
    """Compile the model in place and return it: its parameters keep their names, so checkpoints do not notice.

    "auto" compiles for CUDA alone. On a CPU the first step takes half a minute or more to compile.
    """
    if enabled not in (True, False, "auto"):
        raise UsageError(f"compile {enabled!r} is not one of auto, True, False")
    if mode not in MODES:
        raise UsageError(f"compile mode {mode!r} is not one of {', '.join(MODES)}")
    if enabled is False or (enabled == "auto" and not _on_cuda(model)):
        return model
    try:
        # A mode is inductor's; torch refuses one beside any other backend.
        model.compile(backend=backend, **({"mode": mode} if backend == "inductor" else {}))
    except RuntimeError as error:  # a Python or a system that torch.compile does not know
        report(_reason(error))
    return model


def is_compiled(model: nn.Module) -> bool:
    return model._compiled_call_impl is not None


def run_guarded(model: nn.Module, step: Callable[[], T], *, report: Report) -> T:
    """Run the first step, which has to start without gradients; if compiled code fails in it, run it again without.

    Random numbers start from the same place in the second attempt. An error that is not the compiler's comes again.
    """
    if not is_compiled(model):
        return step()
    before = rng_state()
    try:
        return step()
    except torch.OutOfMemoryError:
        raise  # uncompiled code needs more memory, not less
    except Exception as error:
        report(_reason(error))
    model._compiled_call_impl = None
    model.zero_grad(set_to_none=True)
    restore_rng(before)
    return step()


def _on_cuda(model: nn.Module) -> bool:
    return any(p.device.type == "cuda" for p in model.parameters())


def _reason(error: Exception) -> str:
    """One line: torch's own messages run over pages, and wrap the backend's error, whose first line says the cause."""
    cause = getattr(error, "inner_exception", error)
    first = next((line.strip() for line in str(cause).splitlines() if line.strip()), "no reason given")
    return f"not compiled ({type(cause).__name__}: {first[:200]}): training goes on without torch.compile"
