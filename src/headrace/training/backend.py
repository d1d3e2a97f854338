"""Settings of torch that are global to the process, set once before training."""

from __future__ import annotations

import random

import numpy as np
import torch


def setup_backend(device: torch.device | str) -> None:
    """TF32 matrices and tuned convolutions on CUDA.

    Nothing is set for a CPU: there "high" lets oneDNN cut fp32 products short on some kinds of CPU and not on others.
    """
    if torch.device(device).type != "cuda":
        return
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True


def seed_everything(seed: int) -> None:
    """Seed Python, numpy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # it takes 32 bits
    torch.manual_seed(seed)
