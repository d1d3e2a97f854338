"""A block of a model, with its activations kept for the backward pass or computed again in it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def run_block(block: nn.Module, *inputs: Any, cache: Any) -> Any:
    """block(*inputs, cache). With `block.recompute` nothing inside it is kept, which costs a third more work."""
    if block.recompute and torch.is_grad_enabled() and cache is None:
        # Blocks draw no random numbers: keeping their state would only make the host wait.
        return checkpoint(block, *inputs, None, use_reentrant=False, preserve_rng_state=False)
    return block(*inputs, cache)
