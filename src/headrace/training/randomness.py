"""The state of every random generator a run draws from, as values that torch.load(weights_only=True) reads."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """Where Python, numpy, torch and every CUDA device stand in their random sequences."""
    return {
        "python": random.getstate(),
        "numpy": _without_arrays(np.random.get_state(legacy=False)),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_rng(state: dict[str, Any]) -> None:
    """Go on where `rng_state` was taken; on fewer devices than then, the states of the others are left out."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    np.random.set_state(_with_arrays(state["numpy"]))
    torch.set_rng_state(state["torch"])
    for device, device_state in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(device_state, device)


def _without_arrays(value: Any) -> Any:
    """numpy arrays as tensors: weights_only refuses numpy's own pickles."""
    if isinstance(value, dict):
        return {key: _without_arrays(entry) for key, entry in value.items()}
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def _with_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_arrays(entry) for key, entry in value.items()}
    return value.numpy() if isinstance(value, torch.Tensor) else value


def seed_rank(seed: int, rank: int, step: int) -> None:
    """Another sequence for each rank and each place that a run goes on from."""
    words = np.random.SeedSequence([seed % 2**64, rank, step]).generate_state(3)
    random.seed(int(words[0]))
    np.random.seed(int(words[1]))
    torch.manual_seed(int(words[2]))
