"""Whether a contender gives the tokens of the dataset: what can be said of its rows depends on how it orders them.

chunks      each row begins where another has its last token; most of an epoch is read, no row twice
anywhere    each row is a range of the tokens
documents   documents in another order: no token comes more often than the dataset has it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

SHARE = 0.9  # of an epoch: with workers the last part of it may be left out or mixed with the next


def check(batches: Iterator[Any], spec: Any, order: str | None) -> int:
    """The number of rows that were compared; raises ValueError at the first that is wrong."""
    if order is None:
        return 0
    steps = int(spec.chunks() * SHARE) // spec.rows
    rows = np.concatenate([joined(*next(batches), spec) for _ in range(steps)])
    {"chunks": check_chunks, "anywhere": check_ranges, "documents": check_counts}[order](rows, spec)
    return len(rows)


def joined(inputs: Any, targets: Any, spec: Any) -> np.ndarray[Any, Any]:
    """Rows of length + 1, after shape, type and the shift between inputs and targets have been compared."""
    inputs, targets = np.asarray(inputs), np.asarray(targets)
    for part in (inputs, targets):
        if part.shape != (spec.rows, spec.length) or part.dtype != np.int64:
            raise ValueError(f"a batch of {part.dtype} {part.shape}, not int64 {(spec.rows, spec.length)}")
    if not np.array_equal(inputs[:, 1:], targets[:, :-1]):
        raise ValueError("targets are not the inputs one token later")
    return np.concatenate([inputs, targets[:, -1:]], axis=1)


def check_chunks(rows: np.ndarray[Any, Any], spec: Any) -> None:
    expected = Counter(spec.chunk(index).tobytes() for index in range(spec.chunks()))
    found = Counter(row.astype(spec.dtype).tobytes() for row in rows)
    if found - expected:
        raise ValueError(f"{(found - expected).total()} of {len(rows)} rows are no chunks of the data, or come twice")


def check_ranges(rows: np.ndarray[Any, Any], spec: Any) -> None:
    data, size = spec.tokens().tobytes(), np.dtype(spec.dtype).itemsize
    for row in rows.astype(spec.dtype):
        at = data.find(row.tobytes())
        if at < 0 or at % size:
            raise ValueError("a row is no range of the data's tokens")


def check_counts(rows: np.ndarray[Any, Any], spec: Any) -> None:
    has = np.bincount(spec.tokens(), minlength=int(rows.max()) + 1)
    given = np.bincount(rows[:, :-1].ravel(), minlength=len(has))
    if (given > has).any():
        raise ValueError("tokens come more often than the data have them")
