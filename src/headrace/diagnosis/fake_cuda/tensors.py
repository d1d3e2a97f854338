"""Below autograd: tensors on the CPU stay real, tensors on CUDA are fake, and what crosses between them is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import arg_tree_leaves

from headrace.diagnosis.fake_cuda.pinned import is_pinned
from headrace.diagnosis.fake_cuda.record import Recorder

aten = torch.ops.aten
MASKS = (torch.bool, torch.uint8)
NEW_TENSORS = ("tensor", "as_tensor", "asarray")  # functions that make a tensor of Python numbers or arrays
UNANSWERED = object()


def on_cuda(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "cuda"


def invented(dtype: torch.dtype) -> bool | int | float:
    """The value that stands for every number on the device: it goes through most control flow without harm."""
    if dtype is torch.bool:
        return False
    return 1.0 if dtype.is_floating_point or dtype.is_complex else 1


def invented_on_host(like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    dtype = dtype or like.dtype
    return torch.full(tuple(like.shape), invented(dtype), dtype=dtype)


class FakesAlone(FakeTensorMode):  # type: ignore[no-untyped-call]
    """torch asks `torch.cuda.is_available()`, which has a stand-in by now, whether it may touch the device."""

    avoid_device_init = True


class FakeCuda(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder
        self._fakes = FakesAlone(allow_non_fake_inputs=True)
        self._lock = RLock()  # the mode of fake tensors keeps a stack, and threads share it
        self._answers = self._table()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        fake = any(isinstance(leaf, FakeTensor) for leaf in arg_tree_leaves(*args, **kwargs))
        if not fake and _target(kwargs) != "cuda":
            return func(*args, **kwargs)
        answer = self._answers[func](args, kwargs) if func in self._answers else UNANSWERED
        return self._run(func, args, kwargs) if answer is UNANSWERED else answer

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        with self._lock, self._fakes:
            return func(*args, **kwargs)

    def _empty(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        made: torch.Tensor = self._run(torch.empty, (tuple(shape),), {"dtype": dtype, "device": device})
        return made

    def _table(self) -> dict[Any, Callable[[Any, Any], Any]]:
        """Operators whose result the CPU waits for, and copies."""
        return {
            aten._local_scalar_dense.default: self._scalar,
            aten.equal.default: self._equal,
            aten.nonzero.default: self._nonzero,
            aten.masked_select.default: self._masked_select,
            aten._unique2.default: self._unique,
            aten.unique_dim.default: self._unique,
            aten.unique_consecutive.default: self._unique,
            aten.bincount.default: self._bincount,
            aten.repeat_interleave.Tensor: self._repeat_interleave,
            aten._to_copy.default: self._to_copy,
            aten.copy_.default: self._copy,
            aten.index.Tensor: self._index,
            aten.index_put.default: self._index_put,
            aten.index_put_.default: self._index_put_,
        }

    # Answers: what the operator returns, after it was recorded, or UNANSWERED to leave it to fake tensors.

    def _scalar(self, args: Any, kwargs: Any) -> Any:
        self._recorder.sync("item")
        return invented(args[0].dtype)

    def _equal(self, args: Any, kwargs: Any) -> bool:
        self._recorder.sync("equal")
        return False

    def _nonzero(self, args: Any, kwargs: Any) -> torch.Tensor:
        self._recorder.sync("nonzero")
        return self._empty((args[0].numel(), args[0].dim()), torch.int64, args[0].device)

    def _masked_select(self, args: Any, kwargs: Any) -> torch.Tensor:
        self._recorder.sync("mask")
        return self._empty((args[0].numel(),), args[0].dtype, args[0].device)

    def _unique(self, args: Any, kwargs: Any) -> tuple[torch.Tensor, ...]:
        self._recorder.sync("unique")
        source = args[0]
        counts = self._empty((source.numel(),), torch.int64, source.device)
        inverse = self._empty(source.shape, torch.int64, source.device)
        return self._empty((source.numel(),), source.dtype, source.device), inverse, counts

    def _bincount(self, args: Any, kwargs: Any) -> torch.Tensor:
        self._recorder.sync("bincount")
        least = args[2] if len(args) > 2 else kwargs.get("minlength", 0)
        return self._empty((max(least, int(invented(torch.int64)) + 1),), torch.int64, args[0].device)

    def _repeat_interleave(self, args: Any, kwargs: Any) -> Any:
        if kwargs.get("output_size") is not None:
            return UNANSWERED
        self._recorder.sync("repeat_interleave")
        return self._empty((args[0].numel(),), torch.int64, args[0].device)  # every count is 1

    def _to_copy(self, args: Any, kwargs: Any) -> Any:
        source, target = args[0], _target(kwargs)
        if on_cuda(source) and target == "cpu":
            if not kwargs.get("non_blocking"):
                self._recorder.sync("to_host")
            return invented_on_host(source, kwargs.get("dtype"))
        if not on_cuda(source) and target == "cuda":
            self._to_device(source, bool(kwargs.get("non_blocking")))
        return UNANSWERED

    def _copy(self, args: Any, kwargs: Any) -> Any:
        target, source = args[:2]
        non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking"))
        if on_cuda(target) and not on_cuda(source):
            self._to_device(source, non_blocking)
        elif on_cuda(source) and not on_cuda(target):
            if not non_blocking:
                self._recorder.sync("to_host")
            return target.fill_(invented(target.dtype))
        return UNANSWERED

    def _to_device(self, source: torch.Tensor, non_blocking: bool) -> None:
        if self._recorder.calling in NEW_TENSORS:
            self._recorder.sync("new_tensor")
        elif not non_blocking:
            self._recorder.sync("to_device")
        elif not is_pinned(source):
            self._recorder.sync("to_device_unpinned")

    def _index(self, args: Any, kwargs: Any) -> Any:
        source, indices = args[0], [index for index in args[1] if index is not None]
        masks = [index for index in indices if index.dtype in MASKS]
        self._record_index(source, indices, masks)
        if not masks or len(indices) > 1:
            return UNANSWERED
        before = next(place for place, index in enumerate(args[1]) if index is not None)
        rest = source.shape[before + masks[0].dim() :]
        return self._empty((*source.shape[:before], masks[0].numel(), *rest), source.dtype, source.device)

    def _index_put(self, args: Any, kwargs: Any) -> Any:
        answer = self._index_put_(args, kwargs)
        return answer if answer is UNANSWERED else self._run(aten.clone.default, (answer,), {})

    def _index_put_(self, args: Any, kwargs: Any) -> Any:
        target, value = args[0], args[2]
        indices = [index for index in args[1] if index is not None]
        masks = [index for index in indices if index.dtype in MASKS]
        all_masks = len(masks) == len(indices) and all(map(on_cuda, masks))
        if all_masks and value.numel() == 1 and not on_cuda(value):
            return target  # x[mask] = 0.0 becomes masked_fill_, which waits for nothing
        self._record_index(target, indices, masks)
        return target if masks else UNANSWERED

    def _record_index(self, target: Any, indices: list[Any], masks: list[Any]) -> None:
        if on_cuda(target) and any(not on_cuda(index) for index in indices):
            self._recorder.sync("cpu_index")
        elif any(map(on_cuda, masks)):
            self._recorder.sync("mask")


def _target(kwargs: dict[str, Any]) -> str | None:
    device = kwargs.get("device")
    return None if device is None else torch.device(device).type
