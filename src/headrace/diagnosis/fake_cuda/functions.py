"""Above autograd: calls that never reach an operator, or reach it without saying which call it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from headrace.diagnosis.fake_cuda.pinned import mark_pinned
from headrace.diagnosis.fake_cuda.record import Recorder
from headrace.diagnosis.fake_cuda.tensors import invented, invented_on_host, on_cuda

FIRST = torch.device("cuda", 0)


def with_index(device: Any) -> Any:
    """cuda -> cuda:0. torch would ask the device which one is current."""
    bare = isinstance(device, (str, torch.device)) and str(device) == "cuda"
    return FIRST if bare else device


class FakeFunctions(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._answers: dict[str, Callable[..., Any]] = {
            "item": self._reads("item", lambda value: value),
            "__float__": self._reads("item", float),
            "__int__": self._reads("item", int),
            "__index__": self._reads("item", int),
            "__bool__": self._reads("bool", bool),
            "__format__": self._format,
            "__repr__": self._repr,
            "__str__": self._repr,
            "numpy": self._numpy,
            "__array__": self._numpy,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in self._answers and args and on_cuda(args[0]):
            return self._answers[name](*args, **kwargs)
        if name == "cuda" and args and isinstance(args[0], torch.Tensor):
            return self._call("to", torch.Tensor.to, (args[0], FIRST), {"non_blocking": _non_blocking(args, kwargs)})
        if "device" in kwargs:
            kwargs["device"] = with_index(kwargs["device"])
        if name in ("to", "set_default_device"):
            args = tuple(map(with_index, args))
        if kwargs.get("pin_memory"):
            return mark_pinned(self._call(name, func, args, {**kwargs, "pin_memory": False}))
        return self._call(name, func, args, kwargs)

    def _call(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        before, self._recorder.calling = self._recorder.calling, name
        try:
            return func(*args, **kwargs)
        finally:
            self._recorder.calling = before

    def _reads(self, kind: str, convert: Callable[[Any], Any]) -> Callable[..., Any]:
        def answer(tensor: torch.Tensor) -> Any:
            if tensor.numel() != 1:
                raise RuntimeError(f"a Tensor with {tensor.numel()} elements cannot be converted to Scalar")
            self._recorder.sync(kind)
            return convert(invented(tensor.dtype))

        return answer

    def _format(self, tensor: torch.Tensor, spec: str) -> str:
        if tensor.dim():
            return self._repr(tensor)
        self._recorder.sync("item")
        return format(invented(tensor.dtype), spec)

    def _repr(self, tensor: torch.Tensor, **_: Any) -> str:
        self._recorder.sync("print")
        value = invented(tensor.dtype)
        shown = str(value) if tensor.dim() == 0 else f"..., size={tuple(tensor.shape)}"
        return f"tensor({shown}, device='{tensor.device}')"

    def _numpy(self, tensor: torch.Tensor, *_: Any, **__: Any) -> Any:
        raise TypeError(  # as with a GPU
            f"can't convert {tensor.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )


def tolist_with(recorder: Recorder) -> Callable[[torch.Tensor], Any]:
    """Fake tensors have a `tolist` of their own, which would read number by number."""

    def tolist(tensor: torch.Tensor) -> Any:
        recorder.sync("tolist")
        return invented_on_host(tensor).tolist()

    return tolist


def _non_blocking(args: Any, kwargs: dict[str, Any]) -> bool:
    """Of tensor.cuda(device, non_blocking)."""
    return bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
