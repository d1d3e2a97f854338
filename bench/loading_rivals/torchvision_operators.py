"""Streaming imports torchvision, for its image datasets, whether or not anyone reads images.

The usual torchvision is built for CUDA. Beside a CPU build of torch its operators cannot be loaded, and then its import
fails because it describes two of them that are not there. Declared empty, they let the import pass.
"""

from importlib.util import find_spec
from pathlib import Path

import torch

DECLARED = []  # a library that is collected takes its operators with it


def define_missing_operators():
    native = Path(find_spec("torchvision").origin).with_name("_C.so")
    try:
        torch.ops.load_library(native)
    except OSError:
        DECLARED.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            DECLARED[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
