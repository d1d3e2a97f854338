"""Memory for batches: page-locked where there is CUDA, because only then does a copy to the device run beside it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def allocate(shape: tuple[int, int], dtype: np.dtype[Any], *, pin: bool | None) -> NDArray[Any]:
    """A buffer of zeros. `pin` None: page-locked if this process uses torch and torch finds CUDA."""
    if pin or (pin is None and "torch" in sys.modules):
        from headrace.loading.device import cuda_available, pinned

        if pin or cuda_available():
            return pinned(shape, dtype)
    return np.zeros(shape, dtype)
