# ruff: noqa: E402
"""A training script as guides write it. `headrace demo` runs this file, unchanged, under `headrace diagnose run`.

Model, weights at the start, length of a sequence, rows of a step, learning rate and precision are those of the fast
way, and so is the text. Nothing waits on purpose. What costs is what the guides that Headrace grew out of did, or what
most small training scripts do:

  tokenizing inside the loop, one text at a time          the guides, with the library "tokenizers"
  texts cut to the length, the rest of them thrown away   truncation=True, max_length=N
  rows padded to the longest of them                      padding=True
  a prediction is drawn for every token, read, and        the guides: about 3,000 reads a chunk and more
  counted as right or wrong; its loss is read too, into
  a Python list
  a line is printed at every step                         the guides
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback, even while torch is imported

import argparse
import json
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812

from headrace.models import build_model
from headrace.sources.catalogue import stdlib_files
from tokenizers import Tokenizer

LEAST_STEPS = 8


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    tokenizer.enable_truncation(args.length + 1)
    pad: int = tokenizer.token_to_id("<|endoftext|>") or 0
    texts = [Path(name).read_text(encoding="utf-8", errors="ignore") for name in sorted(stdlib_files())]
    random.Random(0).shuffle(texts)
    model = build_model("transformer", args.size, vocab_size=tokenizer.get_vocab_size(), seed=0).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)

    steps: list[dict[str, float]] = []
    next_text = 0
    started = time.perf_counter()
    while len(steps) < LEAST_STEPS or time.perf_counter() - started < args.seconds:
        began = time.perf_counter()
        rows: list[list[int]] = []
        while len(rows) < args.rows:
            text = texts[next_text % len(texts)]
            next_text += 1
            # Tokenized here, the whole text for its first tokens, and again in every epoch.
            ids = tokenizer.encode(text).ids
            if len(ids) > 1:
                rows.append(ids)
        longest = max(len(ids) for ids in rows)
        batch = torch.tensor([ids + [pad] * (longest - len(ids)) for ids in rows]).to(device)
        targets = batch[:, 1:]

        logits = model(batch[:, :-1])
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad, reduction="none")
        losses = losses.view_as(targets)
        token_losses, right = [], 0
        for row, ids in enumerate(rows):
            for place in range(len(ids) - 1):
                # The host waits for a number, twice for every token.
                token_losses.append(losses[row, place].item())
                chances = logits[row, place].softmax(-1)
                predicted = torch.multinomial(chances, 1).item()
                right += predicted == ids[place + 1]

        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(1.0, (len(steps) + 1) / (args.warmup + 1))
        optimizer.zero_grad()
        (losses.sum() / len(token_losses)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

        loss, seconds = sum(token_losses) / len(token_losses), time.perf_counter() - began
        told = {"loss": loss, "tokens": len(token_losses), "computed": targets.numel(), "right": right}
        steps.append({**told, "seconds": seconds})
        print(f"step {len(steps)}  loss {loss:.3f}  {len(token_losses) / seconds:,.0f} tokens/s", flush=True)
    args.out.write_text(json.dumps(steps) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="a tokenizer.json")
    parser.add_argument("--out", type=Path, default=Path("steps.json"), help="loss, tokens and seconds of each step")
    parser.add_argument("--size", default="nano")
    parser.add_argument("--length", type=int, default=256, help="tokens of a row at most")
    parser.add_argument("--rows", type=int, default=4, help="texts of a step")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=0, help="steps until the learning rate is reached")
    parser.add_argument("--seconds", type=float, default=12.0, help="train for so long")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


if __name__ == "__main__":
    main()
