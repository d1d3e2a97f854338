"""Stand-ins for saving and loading. Nothing is saved: invented numbers must never lie over somebody's checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from headrace.diagnosis.fake_cuda.record import Recorder


def save_with(recorder: Recorder) -> Callable[..., None]:
    def save(*args: Any, **kwargs: Any) -> None:
        recorder.sync("save")
        recorder.record.unsaved += 1

    return save


def load_with(recorder: Recorder, real: Callable[..., Any]) -> Callable[..., Any]:
    """Load to the CPU, and from there to the device if the script asked for it."""

    def load(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        with recorder.muted():
            loaded = real(file, "cpu", *args, **kwargs)
            if not _names_cuda(map_location):
                return loaded
            return tree_map_only(torch.Tensor, lambda tensor: tensor.to("cuda:0"), loaded)

    return load


def _names_cuda(map_location: Any) -> bool:
    return isinstance(map_location, (str, torch.device)) and torch.device(map_location).type == "cuda"
