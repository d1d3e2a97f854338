"""With a real GPU: torch says itself where it waits, as a warning at the line; the numbers are real."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from headrace.diagnosis.fake_cuda.install import counted_steps
from headrace.diagnosis.fake_cuda.record import Recorder

MESSAGE = "called a synchronizing CUDA operation"
KINDS = {  # of sync, by the function of torch that was called
    "item": "item", "__float__": "item", "__int__": "item", "__index__": "item", "__format__": "item",
    "__bool__": "bool", "is_nonzero": "bool", "tolist": "tolist", "__repr__": "print",
    "nonzero": "nonzero", "argwhere": "nonzero", "where": "nonzero", "masked_select": "mask", "__getitem__": "mask",
    "__setitem__": "mask", "unique": "unique", "equal": "equal", "repeat_interleave": "repeat_interleave",
    "bincount": "bincount", "cpu": "to_host", "cuda": "to_device", "tensor": "new_tensor", "as_tensor": "new_tensor",
}  # fmt: skip


class Names(TorchFunctionMode):
    """Remembers which function is being called, because a warning does not say it."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("to", "copy_") and isinstance(args[0], torch.Tensor):
            name = _direction(name, args)
        before, self._recorder.calling = self._recorder.calling, name
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._recorder.calling = before


def _direction(name: str, args: Any) -> str:
    """A copy as `cpu` or `cuda`: where it goes."""
    source = args[0] if name == "to" else args[1]
    return "cpu" if isinstance(source, torch.Tensor) and source.device.type == "cuda" else "cuda"


def recorded_warnings(recorder: Recorder, show: Callable[..., None]) -> Callable[..., None]:
    def show_or_record(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if MESSAGE in str(message):
            recorder.sync(KINDS.get(recorder.calling, "other"))
        else:
            show(message, *args, **kwargs)

    return show_or_record


@contextmanager
def watched_gpu(recorder: Recorder, set_mode: Callable[[str], None] = torch.cuda.set_sync_debug_mode) -> Iterator[None]:
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.filterwarnings("always", message=f".*{MESSAGE}")
        warnings.showwarning = recorded_warnings(recorder, warnings.showwarning)
        stack.enter_context(counted_steps(recorder))
        stack.enter_context(Names(recorder))
        stack.callback(set_mode, "default")
        set_mode("warn")
        yield
