"""What a contender is told: where the tokens are and what a batch is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Spec(NamedTuple):
    dataset: str  # the Headrace dataset
    flat: str  # the same tokens, end to end in one file
    folder: str  # for the contender's own files
    dtype: str
    eos: int
    pad: int
    rows: int
    length: int

    @property
    def own(self) -> Path:
        return Path(self.folder)

    def tokens(self) -> np.memmap[Any, Any]:
        return np.memmap(self.flat, self.dtype, "r")

    def chunks(self) -> int:
        """How many rows of length + 1 there are when each begins where the one before it has its last token."""
        return (len(self.tokens()) - 1) // self.length

    def chunk(self, index: int) -> np.ndarray[Any, Any]:
        return self.tokens()[index * self.length : (index + 1) * self.length + 1]
