"""Batches of int64 inputs and targets, side by side: headrace's Loader, the copy limit, and common ways to read tokens.

    python bench/loading.py DATASET --shapes 32x2048 8x32768

Interleaved rounds, medians. Each contender gives the same number of batches; the dataset is warm. torch is needed for
the rivals only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headrace import Loader, TokenStore

Batches = Iterator[Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="a prepared dataset of one shard or more")
    parser.add_argument("--shapes", nargs="*", default=["32x2048", "8x32768"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=float, default=40e6, help="tokens a contender gives in a round")
    args = parser.parse_args()
    tokens = flat(args.dataset)
    int(tokens.astype(np.int64).sum())  # warm
    for shape in args.shapes:
        rows, length = map(int, shape.split("x"))
        count = max(8, int(args.tokens) // (rows * length))
        print(json.dumps({"shape": shape, "mtok_per_s": measure(args, tokens, rows, length, count)}), flush=True)


def flat(folder: Path) -> np.ndarray[Any, Any]:
    """The tokens as one array, which is how most ways to read them want it."""
    store = TokenStore(folder)
    return np.concatenate([store.shard_tokens(i) for i in range(len(store.shards))])


def measure(args: argparse.Namespace, tokens: Any, rows: int, length: int, count: int) -> dict[str, float]:
    contenders: dict[str, Callable[[], Batches]] = {
        "copy limit": lambda: copy_limit(rows, length),
        "headrace": lambda: headrace_batches(args.dataset, rows, length),
        "nanoGPT get_batch": lambda: get_batch(tokens, rows, length),
        "torch DataLoader, 0 workers": lambda: data_loader(tokens, rows, length, 0),
        "torch DataLoader, 2 workers": lambda: data_loader(tokens, rows, length, 2),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(args.rounds):
        for name, start in contenders.items():
            rates[name].append(rate(start(), rows * length, count))
    return {name: round(statistics.median(values), 1) for name, values in rates.items()}


def rate(batches: Batches, size: int, count: int) -> float:
    next(batches)  # what is done once is not what a step waits for
    started = time.perf_counter()
    for _ in range(count):
        next(batches)
    return size * count / 1e6 / (time.perf_counter() - started)


def copy_limit(rows: int, length: int) -> Batches:
    source = np.random.default_rng(0).integers(0, 30_000, (2, rows, length))
    inputs, targets = np.zeros((rows, length), np.int64), np.zeros((rows, length), np.int64)
    while True:
        np.copyto(inputs, source[0])
        np.copyto(targets, source[1])
        yield inputs, targets


def headrace_batches(folder: Path, rows: int, length: int) -> Batches:
    for batch in Loader(folder, seq_len=length, batch_size=rows):
        yield batch.input_ids, batch.targets


def get_batch(tokens: Any, rows: int, length: int) -> Batches:
    import torch

    while True:
        starts = torch.randint(len(tokens) - length, (rows,))
        inputs = torch.stack([torch.from_numpy(tokens[i : i + length].astype(np.int64)) for i in starts])
        targets = torch.stack([torch.from_numpy(tokens[i + 1 : i + 1 + length].astype(np.int64)) for i in starts])
        yield inputs, targets


class Chunks:
    """A map-style dataset as it is usually written."""

    def __init__(self, tokens: Any, length: int) -> None:
        self.tokens, self.length = tokens, length

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index: int) -> Any:
        import torch

        row = self.tokens[index * self.length : (index + 1) * self.length + 1].astype(np.int64)
        return torch.from_numpy(row[:-1]), torch.from_numpy(row[1:])


def data_loader(tokens: Any, rows: int, length: int, workers: int) -> Batches:
    from torch.utils.data import DataLoader

    while True:
        loader = DataLoader(Chunks(tokens, length), batch_size=rows, shuffle=True, drop_last=True, num_workers=workers)  # type: ignore[arg-type]
        yield from loader


if __name__ == "__main__":
    main()
