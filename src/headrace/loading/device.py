"""Batches on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def cuda_available() -> bool:
    return torch.cuda.is_available()


def pinned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Page-locked memory as an array."""
    array: NDArray[Any] = torch.zeros(shape, dtype=getattr(torch, dtype.name), pin_memory=True).numpy()
    return array
