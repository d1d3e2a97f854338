"""How well a token is guessed from the one before it: the loss that a trained model has to be clearly below.

    python bench/bigram.py DATASET

Pairs are counted over the whole train split. The estimate is interpolated with single tokens,
(count(a, b) + strength * p(b)) / (count(a) + strength), and the strength is tuned on the last part of train, which is
left out of the counts for that. The loss is over the very batches that `headrace train` evaluates on, in nats.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.storage import TRAIN, read_metadata
from headrace.training.recipe import Recipe, _open_loaders

Ids = NDArray[np.int64]
TUNED = 0.05  # of the train tokens
STRENGTHS = [2.0**power for power in range(-2, 15)]


class Bigram:
    """Counts of tokens and of pairs; a pair is one number, so that sorting finds and counts them all."""

    def __init__(self, tokens: Ids, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.before = np.bincount(tokens[:-1], minlength=vocab_size)
        self.single = (np.bincount(tokens, minlength=vocab_size) + 1) / (len(tokens) + vocab_size)
        self.pairs, self.counts = np.unique(tokens[:-1] * vocab_size + tokens[1:], return_counts=True)

    def loss(self, inputs: Ids, targets: Ids, strength: float) -> float:
        """Mean of -log p(target | input)."""
        found = self._count(inputs * self.vocab_size + targets)
        share = (found + strength * self.single[targets]) / (self.before[inputs] + strength)
        return float(-np.log(share).mean())

    def unigram_loss(self, targets: Ids) -> float:
        return float(-np.log(self.single[targets]).mean())

    def _count(self, pairs: Ids) -> Ids:
        at = np.searchsorted(self.pairs, pairs).clip(max=len(self.pairs) - 1)
        return np.where(self.pairs[at] == pairs, self.counts[at], 0)


def main() -> None:
    args = parse()
    started = time.perf_counter()
    tokens, vocab_size = train_tokens(args.dataset), read_metadata(args.dataset).vocab_size
    strength = tune(tokens, vocab_size)
    model = Bigram(tokens, vocab_size)
    inputs, targets = validation(args)
    result = {
        "uniform": round(math.log(vocab_size), 4),
        "unigram": round(model.unigram_loss(targets), 4),
        "bigram": round(model.loss(inputs, targets, strength), 4),
        "strength": strength,
        "train_tokens": len(tokens),
        "different_pairs": len(model.pairs),
        "validation_tokens": len(targets),
        "unseen_pairs": round(float((model._count(inputs * vocab_size + targets) == 0).mean()), 4),
        "seconds": round(time.perf_counter() - started, 1),
    }
    print(json.dumps(result, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="a prepared dataset with a val split")
    parser.add_argument("--seq-len", type=int, default=1024, help="as in headrace train")
    parser.add_argument("--batch-size", type=int, default=16, help="as in headrace train")
    parser.add_argument("--eval-batches", type=int, default=16, help="as in headrace train")
    return parser.parse_args()


def train_tokens(dataset: Path) -> Ids:
    metadata = read_metadata(dataset)
    parts = [np.fromfile(dataset / f"{shard.name}.bin", metadata.dtype) for shard in metadata.of_split(TRAIN)]
    return np.concatenate(parts).astype(np.int64)


def seen_tokens(args: argparse.Namespace, steps: int) -> Ids:
    """What `headrace train` reads in so many steps with seed 0, row after row."""
    recipe = Recipe(data=[str(args.dataset)], seq_len=args.seq_len, batch_size=args.batch_size)
    loader: Any = _open_loaders(recipe)[0]
    return joined([loader.batch_at(step).input_ids for step in range(steps)])


def tune(tokens: Ids, vocab_size: int) -> float:
    cut = int(len(tokens) * (1 - TUNED))
    model, inputs, targets = Bigram(tokens[:cut], vocab_size), tokens[cut:-1], tokens[cut + 1 :]
    return min(STRENGTHS, key=lambda strength: model.loss(inputs, targets, strength))


def validation(args: argparse.Namespace) -> tuple[Ids, Ids]:
    """Inputs and targets of the batches that `headrace train` evaluates on, from the loader that it opens."""
    recipe = Recipe(data=[str(args.dataset)], seq_len=args.seq_len, batch_size=args.batch_size)
    loader: Any = _open_loaders(recipe)[1]
    batches = [loader.batch_at(step) for step in range(max(1, min(args.eval_batches, loader.steps_per_epoch)))]
    return joined([batch.input_ids for batch in batches]), joined([batch.targets for batch in batches])


def joined(arrays: list[Any]) -> Ids:
    return np.concatenate([array.ravel() for array in arrays]).astype(np.int64)


if __name__ == "__main__":
    main()
