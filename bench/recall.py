"""Can a model find again what it read a thousand tokens ago? Associative recall, from random numbers alone.

    python bench/recall.py [--model ten] [--length 1024] [--pairs 8]

A row begins with pairs (key, value), each key once. Noise follows, tokens that mean nothing, for most of the row; then
keys are asked for, at random, and the model has to give their values. Only the answers count in the loss. Rows
are drawn anew for every step, so there is nothing to remember between them: guessing is right once in KINDS.

Training begins with two pairs in a short row and doubles both as soon as nearly all answers are right: a model learns
what the task is from short rows in minutes, and from long ones in hours.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headrace.models import LanguageModel, build_model
from headrace.training.backend import setup_backend
from headrace.training.optimizer import build_optimizer, set_learning_rate

KINDS = 64  # of keys, of values and of noise
WARMUP = 50
LOOK_EVERY = 25
CALM = 128  # tokens in a row, above which the rate falls
HALVED = 100  # steps of the last stage, in which the rate halves
GOOD = 0.9  # answers of a stage, to go on to the next
SOLVED = 0.99
SMALL = {
    "ten": {"width": 128, "layers": 2, "heads": 2, "states": 32, "ffn": 256},
    "transformer": {"width": 128, "layers": 2, "heads": 2, "ffn": 384},
}


class Stage(NamedTuple):
    pairs: int
    length: int


def stages(pairs: int, length: int) -> list[Stage]:
    """From two pairs in 16 tokens to what is wanted."""
    found = [Stage(min(2, pairs), min(16, length))]
    while found[-1] != (pairs, length):
        found.append(Stage(min(2 * found[-1].pairs, pairs), min(2 * found[-1].length, length)))
    return found


class Rows:
    """Rows of the task: tokens, and which of them are answers."""

    def __init__(self, seed: int, kinds: int = KINDS) -> None:
        self.kinds = kinds
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, count: int, stage: Stage) -> tuple[Tensor, Tensor]:
        """[count, length + 1] tokens and a mask over their targets."""
        pairs, length = stage
        keys = self._order(count, self.kinds)[:, :pairs]
        values = self.kinds + self._numbers(self.kinds, count, pairs)
        asked = self._numbers(pairs, count, pairs)  # with repeats, so that nothing can be known by elimination
        told = torch.stack([keys, values], 2).flatten(1)
        questions = torch.stack([keys.gather(1, asked), values.gather(1, asked)], 2).flatten(1)
        noise = 2 * self.kinds + self._numbers(self.kinds, count, length + 1 - 4 * pairs)
        tokens = torch.cat([told, noise, questions], 1)
        mask = torch.zeros(count, length, dtype=torch.bool)
        mask[:, length - 2 * pairs + 1 :: 2] = True  # the target of a key that is asked for is its value
        return tokens, mask

    def _order(self, count: int, size: int) -> Tensor:
        return torch.rand(count, size, generator=self.generator).argsort(1)

    def _numbers(self, top: int, *shape: int) -> Tensor:
        return torch.randint(top, shape, generator=self.generator)


def build(model: str, seed: int = 0, **options: Any) -> LanguageModel:
    settings = {**SMALL.get(model, {}), "context": 1 << 16, **options}
    return build_model(model, "nano", vocab_size=3 * KINDS, seed=seed, **settings)  # type: ignore[no-any-return]


def accuracy(model: LanguageModel, rows: Rows, count: int, stage: Stage) -> float:
    """Share of right answers."""
    tokens, mask = rows.draw(count, stage)
    found = model.evaluate(tokens[:, :-1], tokens[:, 1:], loss_mask=mask)
    return float(found.correct / found.count)


def train(
    model: LanguageModel, goal: Stage, *, steps: int, tokens: int, lr: float, seed: int, kinds: int = KINDS
) -> list[dict[str, Any]]:
    """Until the last stage is solved or the steps are used up: what was reached, stage by stage."""
    rows, unseen = Rows(seed + 1, kinds), Rows(seed + 2, kinds)
    optimizer = build_optimizer(model, name="adamw", lr=lr, device="cpu", weight_decay=0.1)
    todo, reached, last = stages(*goal), [], 0
    for step in range(1, steps + 1):
        stage = todo[0]
        calm = min(1.0, math.sqrt(CALM / stage.length)) * 0.5 ** (last / HALVED)  # long rows are few, and noisy
        set_learning_rate(optimizer, lr * min(1.0, step / WARMUP) * calm)
        last += stage == goal
        batch, mask = rows.draw(max(1, tokens // stage.length), stage)
        loss = model(batch[:, :-1], batch[:, 1:], loss_mask=mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % LOOK_EVERY == 0:
            right = accuracy(model, unseen, 32, stage)
            print(
                f"step {step:,}  {stage.pairs} pairs in {stage.length:,} tokens  right {right:.1%}",
                file=sys.stderr,
                flush=True,
            )
            enough = SOLVED if stage == goal else GOOD
            if right > enough or step == steps:
                reached.append({**stage._asdict(), "step": step, "accuracy": round(right, 4)})
                todo = todo[1:] if right > enough else []
        if not todo:
            break
    return reached


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    args = parse()
    setup_backend(torch.device("cpu"))
    torch.set_num_threads(args.threads)
    model = build(args.model, args.seed)
    goal = Stage(args.pairs, args.length)
    started = time.perf_counter()
    reached = train(model, goal, steps=args.steps, tokens=args.tokens, lr=args.lr, seed=args.seed)
    seconds = time.perf_counter() - started
    rows = Rows(args.seed + 3)
    lengths = [args.length * factor for factor in (1, 2, 4, 8)]
    result = {
        "model": args.model,
        "parameters": model.parameter_count(),
        "pairs": args.pairs,
        "trained_on": args.length,
        "seconds": round(seconds, 1),
        "guessing": round(1 / KINDS, 4),
        "accuracy": {length: round(accuracy(model, rows, 16, Stage(args.pairs, length)), 4) for length in lengths},
        "stages": reached,
    }
    print(json.dumps(result, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="ten", help="as in headrace train (default: %(default)s)")
    parser.add_argument("--length", type=int, default=1024, help="tokens in a row (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=8, help="keys to remember (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=4096, help="in a step (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=3000, help="at most (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.length < 4 * args.pairs:
        parser.error(f"--length {args.length}: {args.pairs} pairs need at least {4 * args.pairs} tokens.")
    return args


if __name__ == "__main__":
    main()
