"""Settings of torch that are global to the process, set once before training."""

from __future__ import annotations

import random

import numpy as np
import torch

from headrace.training.host_memory import keep_freed_memory


def setup_backend(device: torch.device | str) -> None:
    """TF32 matrices and tuned convolutions on CUDA; on a CPU, memory that stays with the process.

    "high" is not for a CPU: there it lets oneDNN cut fp32 products short on some kinds and not on others.
    """
    if torch.device(device).type == "cpu":
        keep_freed_memory()
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
