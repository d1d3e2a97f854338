"""One chunk of 3,000 tokens through NeuroGen: token by token as a slow trainer goes, and all at once.

    python bench/neurogen_chunk.py DATASET --json neurogen.json

- token by token, spikes detached: each token alone, a sampled prediction and a loss of 1 where it is wrong, both read
  by the host. Nothing of it can be differentiated: no weight ever changes.
- token by token, real gradients: cross-entropy through the spikes and through time, cut every 64 tokens for memory;
  the host reads the loss of each token.
- batched: one forward and one backward pass of the whole chunk, as `headrace train` does it.

All three end a chunk with a step of AdamW, and begin with the same weights. Rounds are interleaved, medians are
reported, and host reads are counted in a pass of their own, by the operators that torch dispatches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from headrace.models.neurogen import SIZES, NeuroGen, NeuroGenConfig, State
from headrace.storage import read_metadata
from headrace.training.optimizer import build_optimizer
from headrace.training.recipe import Recipe, _open_loaders

READS = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal")
HEADER = (
    "| way | seconds per chunk | lowest - highest | tokens/s | host reads per chunk | chunks trained on | "
    "held-out loss before, after | accuracy before, after |"
)
WINDOW = 64  # tokens that gradients go back through where the chunk is not one pass
Chunk = tuple[Tensor, Tensor]


class HostReads(TorchDispatchMode):
    """Counts the operators that bring a value to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.overloadpacket.__name__ in READS
        return func(*args, **(kwargs or {}))


class Way:
    """A model, its optimizer, and how a chunk is learned from."""

    def __init__(self, learn: Callable[[NeuroGen, Chunk], None], model: NeuroGen, lr: float) -> None:
        self.learn, self.model = learn, model
        self.optimizer = build_optimizer(model, name="adamw", lr=lr, device="cpu")
        self.seconds: list[float] = []
        self.chunks = 0

    def step(self, chunk: Chunk) -> float:
        began = time.perf_counter()
        self.learn(self.model, chunk)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.chunks += 1
        return time.perf_counter() - began


def without_gradients(model: NeuroGen, chunk: Chunk) -> None:
    cache, losses = model.new_cache(1, 0), []
    for token, target in zip(*(part[0] for part in chunk), strict=True):
        with torch.no_grad():
            logits = model.logits(token.view(1, 1), cache=cache)[0, 0]
            predicted = int(torch.multinomial(logits.float().softmax(-1), 1).item())
        losses.append((target != predicted).float().item())


def with_gradients(model: NeuroGen, chunk: Chunk) -> None:
    cache, losses = model.new_cache(1, 0), []
    length = chunk[0].shape[1]
    total = torch.zeros(())
    for t, (token, target) in enumerate(zip(*(part[0] for part in chunk), strict=True)):
        logits = model.logits(token.view(1, 1), cache=cache)[0]
        loss = F.cross_entropy(logits.float(), target.view(1))
        losses.append(loss.item())
        total = total + loss / length
        if t % WINDOW == WINDOW - 1 or t == length - 1:
            total.backward()  # type: ignore[no-untyped-call]
            cache, total = [cut(state) for state in cache], torch.zeros(())


def cut(state: State) -> State:
    return State(**{name: None if value is None else value.detach() for name, value in vars(state).items()})


def batched(model: NeuroGen, chunk: Chunk) -> None:
    model(*chunk).backward()


WAYS = {
    "token by token, spikes detached": without_gradients,
    "token by token, real gradients": with_gradients,
    "batched": batched,
}


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    train, held_out = chunks(args)
    vocab_size = read_metadata(args.dataset).vocab_size
    ways = {name: Way(learn, fresh(args.size, vocab_size), args.lr) for name, learn in WAYS.items()}
    before = quality(fresh(args.size, vocab_size), held_out)
    reads = {name: counted(way, train(0)) for name, way in ways.items()}
    for number in range(1, args.rounds + 1):
        for name, way in ways.items():
            way.seconds.append(way.step(train(number)))
            print(f"round {number}: {name}: {way.seconds[-1]:.2f} s", flush=True)
    fast = ways["batched"]
    while fast.chunks < args.chunks:
        fast.step(train(fast.chunks))
    rows = {name: row(way, reads[name], args.tokens, before, held_out) for name, way in ways.items()}
    result = {
        "tokens": args.tokens,
        "size": args.size,
        "threads": args.threads,
        "torch": torch.__version__,
        "ways": rows,
    }
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(table(rows))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="a prepared dataset with a val split")
    parser.add_argument("--tokens", type=int, default=3000)
    parser.add_argument("--size", default="micro", choices=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3, help="timed chunks of each way")
    parser.add_argument("--chunks", type=int, default=30, help="chunks that the batched way trains on in all")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def chunks(args: argparse.Namespace) -> tuple[Callable[[int], Chunk], Chunk]:
    """Chunks of the train split by their number, and one of the val split."""
    loaders: Any = _open_loaders(Recipe(data=[str(args.dataset)], seq_len=args.tokens, batch_size=1))
    return lambda number: tensors(loaders[0].batch_at(number)), tensors(loaders[1].batch_at(0))


def tensors(batch: Any) -> Chunk:
    return torch.from_numpy(batch.input_ids).long(), torch.from_numpy(batch.targets).long()


def fresh(size: str, vocab_size: int) -> NeuroGen:
    model = NeuroGen(NeuroGenConfig(vocab_size=vocab_size, **SIZES[size]))
    model.initialise(0)
    return model


def counted(way: Way, chunk: Chunk) -> int:
    """Host reads of one chunk, which is also the warm-up; clipping and the optimizer's step included."""
    with HostReads() as found:
        way.step(chunk)
    return found.count


def quality(model: NeuroGen, chunk: Chunk) -> tuple[float, float]:
    found = model.evaluate(*chunk)
    return float(found.loss_sum / found.count), float(found.correct / found.count)


def row(way: Way, reads: int, tokens: int, before: tuple[float, float], held_out: Chunk) -> dict[str, Any]:
    seconds = statistics.median(way.seconds)
    loss, accuracy = quality(way.model, held_out)
    return {
        "seconds": seconds,
        "lowest": min(way.seconds),
        "highest": max(way.seconds),
        "tokens_per_s": tokens / seconds,
        "host_reads": reads,
        "chunks": way.chunks,
        "loss": [before[0], loss],
        "accuracy": [before[1], accuracy],
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = [HEADER, "|---|" + "---:|" * 7]
    lines += [
        f"| {name} | {r['seconds']:.2f} | {r['lowest']:.2f} - {r['highest']:.2f} | {r['tokens_per_s']:,.0f} | "
        f"{r['host_reads']:,} | {r['chunks']} | {r['loss'][0]:.3f}, {r['loss'][1]:.3f} | "
        f"{r['accuracy'][0]:.1%}, {r['accuracy'][1]:.1%} |"
        for name, r in rows.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
