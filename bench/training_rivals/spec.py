"""What a contender is told: the data, the model's shape and first weights, and how to train."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LR, MIN_LR_RATIO, WEIGHT_DECAY, BETAS, CLIP = 1e-3, 0.1, 0.1, (0.9, 0.95), 1.0
LOG_EVERY = 10


class Spec(NamedTuple):
    dataset: str  # the Headrace dataset
    flat: str  # its train tokens, end to end in one file
    held_out: str  # its validation tokens, likewise
    dtype: str
    llama: str  # a folder with config.json and model.safetensors: everyone begins with these weights
    out: str  # for what a contender writes
    rows: int
    length: int
    warm: int  # steps that are not counted
    steps: int  # steps that are
    threads: int
    fused: bool  # torch's fused AdamW where the contender leaves the choice

    @property
    def all_steps(self) -> int:
        return self.warm + self.steps

    @property
    def warmup(self) -> int:
        """Steps in which the learning rate rises."""
        return max(1, self.all_steps // 10)

    @property
    def tokens_per_step(self) -> int:
        return self.rows * self.length

    def tokens(self) -> np.memmap[Any, Any]:
        return np.memmap(self.flat, self.dtype, "r")

    def held_out_rows(self, count: int) -> np.ndarray[Any, Any]:
        """[count, length + 1] tokens of the validation split, from its beginning, the same for everyone."""
        tokens = np.fromfile(self.held_out, self.dtype).astype(np.int64)
        count = min(count, (len(tokens) - 1) // self.length)
        return np.stack([tokens[i * self.length : (i + 1) * self.length + 1] for i in range(count)])
