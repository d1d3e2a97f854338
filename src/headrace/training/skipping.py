"""Leaving out a step by a flag that stays on the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def kept_if(found_inf: Tensor | None, tensors: list[Tensor]) -> Iterator[None]:
    """What the block writes to these tensors is taken back where `found_inf` is 1.

    Both results are computed and one is selected, because a choice in Python would make the host wait for the flag.
    """
    if found_inf is None:
        yield
        return
    before = [tensor.clone() for tensor in tensors]
    yield
    keep = found_inf.bool()
    for tensor, old in zip(tensors, before, strict=True):
        torch.where(keep, old, tensor, out=tensor)
