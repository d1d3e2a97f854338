"""Values that the host reads from the device, and copies between them, with the line that asked.

Without a GPU nothing waits, but the lines are the same: they are counted, so that a script can be looked at where it
is written. Tensors that never were on the device are not counted when there is one.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from time import perf_counter
from typing import Any

from .batch_makers import inside_one  # noqa: TID252
from .batches import count_padding  # noqa: TID252
from .clock import OWN  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import MARK  # noqa: TID252

NUMBERS = ("item", "__bool__", "__float__", "__int__", "__index__")
READS = ("tolist", "numpy", "cpu", "nonzero", "__repr__")
# On integers these are how indices are drawn while a batch is made, and no word from the model.
OF_INDICES = frozenset({"tolist", "numpy", "__int__", "__index__"})
NOT_THERE = frozenset({"optimizer", "data_wait", "tokenization", "checkpoint", "host_sync"})


def watch_reads(torch: Any, recording: Recording) -> None:
    for name in NUMBERS:
        watch_number(torch, recording, name)
    for name in READS:
        watch_read(torch, recording, name)
    watch_masks(torch, recording, "__getitem__")
    watch_masks(torch, recording, "__setitem__")
    for name in ("to", "cuda", "copy_"):
        watch_copies(torch, recording, name)
    watch_synchronize(torch, recording)


def watch_read(torch: Any, recording: Recording, name: str) -> None:
    original = getattr(torch.Tensor, name)
    indices = name in OF_INDICES
    what = f"Tensor.{name}"
    clock = recording.clock
    compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or get_ident() != clock.thread or not waits(recording, self, indices, sys._getframe().f_back):
            return original(self, *args, **kwargs)
        phase = "evaluation" if recording.evaluating else "host_sync"
        before = clock.enter(phase)
        try:
            return original(self, *args, **kwargs)
        finally:
            recording.note(phase, what, clock.leave(before), sys._getframe().f_back)

    setattr(read, MARK, True)
    setattr(torch.Tensor, name, read)


def watch_number(torch: Any, recording: Recording, name: str) -> None:
    """As `watch_read`, but cheaper: nothing else happens inside, and a loop may read thousands of numbers in a step."""
    original = getattr(torch.Tensor, name)
    indices = name in OF_INDICES
    what = f"Tensor.{name}"
    clock = recording.clock
    compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = perf_counter()
        frame = sys._getframe().f_back
        if compiling() or get_ident() != clock.thread or not waits(recording, self, indices, frame):
            return original(self, *args, **kwargs)
        phase = "evaluation" if recording.evaluating else "host_sync"
        began = perf_counter()
        try:
            return original(self, *args, **kwargs)
        finally:
            seconds = perf_counter() - began
            clock.move(seconds, phase)
            recording.note(phase, what, seconds, frame)
            clock.move(perf_counter() - called - seconds, OWN)

    setattr(read, MARK, True)
    setattr(torch.Tensor, name, read)


def waits(recording: Recording, tensor: Any, indices: bool, frame: Any) -> bool:
    """Whether reading it is a sync, or would be one on a GPU."""
    if tensor.is_cuda:
        return recording.clock.stack[-1] != "host_sync"
    if recording.cuda or recording.clock.stack[-1] in NOT_THERE:
        return False
    if not indices or tensor.is_floating_point():
        return True
    return recording.computing and not inside_one(recording, frame)


def watch_masks(torch: Any, recording: Recording, name: str) -> None:
    """x[mask] needs the number of true values on the host."""
    original = getattr(torch.Tensor, name)
    tensor_class, boolean = torch.Tensor, torch.bool
    clock = recording.clock
    compiling = torch.compiler.is_compiling

    def is_mask(index: Any) -> bool:
        if isinstance(index, tuple):
            return any(isinstance(part, tensor_class) and part.dtype is boolean for part in index)
        return isinstance(index, tensor_class) and index.dtype is boolean

    @functools.wraps(original)
    def at(self: Any, index: Any, *value: Any) -> Any:
        kind = type(index)
        if kind is int or kind is slice or compiling() or not is_mask(index):
            return original(self, index, *value)
        if get_ident() != clock.thread or not waits(recording, self, False, None):
            return original(self, index, *value)
        before = clock.enter("host_sync")
        try:
            return original(self, index, *value)
        finally:
            recording.note("host_sync", "mask indexing", clock.leave(before), sys._getframe().f_back)

    setattr(at, MARK, True)
    setattr(torch.Tensor, name, at)


def watch_copies(torch: Any, recording: Recording, name: str) -> None:
    original = getattr(torch.Tensor, name)
    clock = recording.clock
    compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or get_ident() != clock.thread:
            return original(self, *args, **kwargs)
        began = perf_counter()
        result = original(self, *args, **kwargs)
        source, target = (args[0], self) if name == "copy_" and args else (self, result)
        if source is not target and source.is_cpu != target.is_cpu:
            seconds = perf_counter() - began
            recording.guard("copies", note_copy, recording, source, args, kwargs, seconds, sys._getframe().f_back)
        return result

    setattr(copy, MARK, True)
    setattr(torch.Tensor, name, copy)


def note_copy(recording: Recording, source: Any, args: Any, kwargs: Any, seconds: float, frame: Any) -> None:
    if not source.is_cpu:
        recording.clock.move(seconds, "host_sync")
        recording.note("host_sync", "copy to the host", seconds, frame)
        return
    if "checkpoint" in recording.clock.stack or (recording.steps.count == 0 and not recording.computing):
        return  # the model itself on its way
    blocking = not kwargs.get("non_blocking", any(argument is True for argument in args))
    pinned = "pinned" if source.is_pinned() else "not pinned"
    recording.clock.move(seconds, "host_to_device")
    what = f"copy to the device, {'blocking' if blocking else 'not blocking'}, {pinned}"
    recording.note("host_to_device", what, seconds, frame, float(source.numel() * source.element_size()))
    if source.dim() == 2 and source.dtype is recording.torch.int64:
        count_padding(recording, source, None)


def watch_synchronize(torch: Any, recording: Recording) -> None:
    original = torch.cuda.synchronize

    @functools.wraps(original)
    def synchronize(*args: Any, **kwargs: Any) -> Any:
        if get_ident() != recording.clock.thread:
            return original(*args, **kwargs)
        before = recording.clock.enter("host_sync")
        try:
            return original(*args, **kwargs)
        finally:
            recording.note("host_sync", "torch.cuda.synchronize", recording.clock.leave(before), sys._getframe().f_back)

    torch.cuda.synchronize = synchronize


HOOKS = {"torch": watch_reads}
