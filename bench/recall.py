"""Can a model find again what it read a thousand tokens ago? Associative recall, from random numbers alone.

    python bench/recall.py [--model ten] [--length 1024] [--pairs 16]

A row begins with pairs (key, value), each key once. Noise follows, tokens that mean nothing, for most of the row; then
every key is asked for, in another order, and the model has to give its value. Only the answers count in the loss. Rows
are drawn anew for every step, so there is nothing to remember between them: guessing is right once in VALUES.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import torch
from torch import Tensor

from headrace.models import LanguageModel, build_model
from headrace.training.backend import setup_backend
from headrace.training.optimizer import build_optimizer, set_learning_rate
from headrace.training.schedule import learning_rate

KEYS = VALUES = NOISE = 64
SMALL = {
    "ten": {"width": 128, "layers": 2, "heads": 2, "states": 32, "ffn": 256},
    "transformer": {"width": 128, "layers": 2, "heads": 2, "ffn": 384},
}


class Rows:
    """Rows of the task: tokens, and which of them are answers."""

    def __init__(self, pairs: int, seed: int) -> None:
        self.pairs = pairs
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, count: int, length: int) -> tuple[Tensor, Tensor]:
        """[count, length + 1] tokens and a mask over their targets."""
        keys = self._order(count, KEYS)[:, : self.pairs]
        values = KEYS + self._numbers(VALUES, count, self.pairs)
        asked = self._order(count, self.pairs)
        told = torch.stack([keys, values], 2).flatten(1)
        questions = torch.stack([keys.gather(1, asked), values.gather(1, asked)], 2).flatten(1)
        noise = KEYS + VALUES + self._numbers(NOISE, count, length + 1 - 4 * self.pairs)
        tokens = torch.cat([told, noise, questions], 1)
        mask = torch.zeros(count, length, dtype=torch.bool)
        mask[:, length - 2 * self.pairs :: 2] = True  # the target of a key that is asked for is its value
        return tokens, mask

    def _order(self, count: int, size: int) -> Tensor:
        return torch.rand(count, size, generator=self.generator).argsort(1)

    def _numbers(self, top: int, *shape: int) -> Tensor:
        return torch.randint(top, shape, generator=self.generator)


def build(model: str, seed: int = 0, **options: Any) -> LanguageModel:
    settings = {**SMALL.get(model, {}), "context": 1 << 16, **options}
    return build_model(model, "nano", vocab_size=KEYS + VALUES + NOISE, seed=seed, **settings)  # type: ignore[no-any-return]


def accuracy(model: LanguageModel, rows: Rows, count: int, length: int) -> float:
    """Share of right answers."""
    tokens, mask = rows.draw(count, length)
    found = model.evaluate(tokens[:, :-1], tokens[:, 1:], loss_mask=mask)
    return float(found.correct / found.count)


def train(model: LanguageModel, args: argparse.Namespace) -> list[dict[str, float]]:
    """Until all answers of a hundred rows are right or the steps are used up."""
    rows, unseen = Rows(args.pairs, args.seed + 1), Rows(args.pairs, args.seed + 2)
    optimizer = build_optimizer(model, name="adamw", lr=args.lr, device="cpu", weight_decay=0.1)
    history = []
    for step in range(args.steps):
        rate = learning_rate(step, kind="wsd", peak=args.lr, warmup=args.steps // 20, total=args.steps, min_ratio=0.1)
        set_learning_rate(optimizer, rate)
        tokens, mask = rows.draw(args.batch_size, args.length)
        loss = model(tokens[:, :-1], tokens[:, 1:], loss_mask=mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % args.every == 0:
            right = accuracy(model, unseen, 32, args.length)
            history.append({"step": step + 1, "loss": round(float(loss.detach()), 4), "accuracy": round(right, 4)})
            print(f"step {step + 1:,}  loss {history[-1]['loss']:.4f}  right {right:.1%}", file=sys.stderr, flush=True)
            if right > 0.999:
                break
    return history


def main() -> None:
    args = parse()
    setup_backend(torch.device("cpu"))
    torch.set_num_threads(args.threads)
    model = build(args.model, args.seed)
    started = time.perf_counter()
    history = train(model, args)
    seconds = time.perf_counter() - started
    rows = Rows(args.pairs, args.seed + 3)
    lengths = [args.length * factor for factor in (1, 2, 4, 8)]
    result = {
        "model": args.model,
        "parameters": model.parameter_count(),
        "pairs": args.pairs,
        "trained_on": args.length,
        "steps": history[-1]["step"] if history else 0,
        "seconds": round(seconds, 1),
        "guessing": round(1 / VALUES, 4),
        "accuracy": {length: round(accuracy(model, rows, 16, length), 4) for length in lengths},
        "history": history,
    }
    print(json.dumps(result, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="ten", help="as in headrace train (default: %(default)s)")
    parser.add_argument("--length", type=int, default=1024, help="tokens in a row (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=16, help="keys to remember (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1000, help="at most (default: %(default)s)")
    parser.add_argument("--every", type=int, default=50, help="steps between looks (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.length < 4 * args.pairs:
        parser.error(f"--length {args.length}: {args.pairs} pairs need at least {4 * args.pairs} tokens.")
    return args


if __name__ == "__main__":
    main()
