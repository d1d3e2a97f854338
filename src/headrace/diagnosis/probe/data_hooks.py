"""Batches that are waited for, DataLoaders as they are built, and files that are opened."""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from threading import get_ident
from time import perf_counter
from typing import Any

from .places import LIBRARY, caller, kind_of, place  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import Stand, wrap  # noqa: TID252


def watch_dataloader(module: Any, recording: Recording) -> None:
    watch_next(module._BaseDataLoaderIter, "__next__", recording, "DataLoader")
    watch_next(module.DataLoader, "__iter__", recording, "DataLoader.__iter__")
    watch_construction(module.DataLoader, recording)


def watch_next(owner: Any, name: str, recording: Recording, what: str) -> None:
    """As `wrap`, but batches for an evaluation are a part of it."""
    original = getattr(owner, name)
    clock = recording.clock

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if get_ident() != clock.thread or clock.within("data_wait"):
            return original(self, *args, **kwargs)
        evaluating = recording.evaluating and not recording.torch.is_grad_enabled()
        phase = "evaluation" if evaluating else "data_wait"
        before = clock.enter(phase)
        try:
            return original(self, *args, **kwargs)
        finally:
            recording.note(phase, what, clock.leave(before), sys._getframe().f_back)

    setattr(owner, name, call)


def watch_construction(loader_class: Any, recording: Recording) -> None:
    original = loader_class.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        recording.guard("DataLoaders", describe, recording, self, sys._getframe().f_back)

    loader_class.__init__ = init


def describe(recording: Recording, loader: Any, frame: Any) -> None:
    file, line, function, through = place(frame)
    recording.loaders[file, line] = {
        "place": [file, line, function, through],
        "workers": loader.num_workers,
        "batch_size": loader.batch_size,
        "pin_memory": bool(loader.pin_memory),
    }


def watch_files(recording: Recording) -> None:
    """Count files that are opened for reading, with their size."""
    original = builtins.open
    clock = recording.clock

    def opening(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
        began = perf_counter()
        opened = original(file, mode, *args, **kwargs)
        if get_ident() == clock.thread and recording.torch is not None and mode in ("r", "rb", "rt"):
            recording.guard("files", note_file, recording, opened, perf_counter() - began, caller(2))
        return opened

    functools.update_wrapper(opening, original)
    builtins.open = io.open = Stand(opening)


def note_file(recording: Recording, opened: Any, seconds: float, frame: Any) -> None:
    phase = recording.clock.stack[-1]
    if phase in ("python", "data_wait", "tokenization") and not is_import(frame):
        recording.note("data_wait", "open", seconds, frame, float(os.fstat(opened.fileno()).st_size))


def is_import(frame: Any) -> bool:
    name = frame.f_code.co_filename if frame is not None else ""
    return name.startswith("<frozen") or (kind_of(name) is LIBRARY and name.endswith(("linecache.py", "tokenize.py")))


def watch_headrace(module: Any, recording: Recording) -> None:
    wrap(recording, module.Loader, "__next__", "data_wait", "headrace.Loader")


def watch_feeder(module: Any, recording: Recording) -> None:
    wrap(recording, module.DeviceFeeder, "__next__", "data_wait", "headrace.DeviceFeeder")


HOOKS = {
    "torch.utils.data.dataloader": watch_dataloader,
    "headrace.loading.loader": watch_headrace,
    "headrace.loading.device": watch_feeder,
}
