"""Memory for batches: page-locked where there is CUDA, in huge pages where batches are large."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

HUGE_PAGE = 2 << 20


def allocate(shape: tuple[int, int], dtype: np.dtype[Any], *, pin: bool | None) -> NDArray[Any]:
    """A buffer of zeros. `pin` None: page-locked if this process uses torch and torch finds CUDA.

    Only from page-locked memory does a copy to the device run beside the computing.
    """
    if pin or (pin is None and "torch" in sys.modules):
        from headrace.loading.device import cuda_available, pinned

        if pin or cuda_available():
            return pinned(shape, dtype)
    size = shape[0] * shape[1] * dtype.itemsize
    return _in_huge_pages(shape, dtype, size) if size >= HUGE_PAGE // 2 else np.zeros(shape, dtype)


def _in_huge_pages(shape: tuple[int, int], dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    """A batch of 2 MB in 4 KiB pages costs 512 entries of the table that turns addresses into places."""
    room = mmap.mmap(-1, -(-size // HUGE_PAGE) * HUGE_PAGE + HUGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        room.madvise(mmap.MADV_HUGEPAGE)
    flat = np.frombuffer(room, np.uint8)
    first = -flat.ctypes.data % HUGE_PAGE
    return flat[first : first + size].view(dtype).reshape(shape)
