"""The training loop that many guides show: text is tokenized one by one inside the loop, and every token is asked for.

python examples/train_the_slow_way.py [--tokens N]

The same model, learning rate, rows of a step and number of tokens as in examples/train_the_fast_way.py, so that the two
can be compared. Each pattern that costs is marked; nothing waits on purpose. On a CPU asking for a number is cheap; on
a GPU every question stops it.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from importlib import resources
from itertools import cycle
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812

import headrace as hr
from tokenizers import Tokenizer

LENGTH, ROWS, PAD = 256, 4, 32_754


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=4096, help="train on so many")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    tokenizer = Tokenizer.from_file(str(resources.files("headrace.tokenizers") / "data" / "headrace-32k.json"))
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in files if path.stat().st_size > 100]
    model = hr.build_model("transformer", "nano", vocab_size=tokenizer.get_vocab_size())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    seen, started, cpu = 0, time.perf_counter(), time.process_time()
    for count, text in enumerate(cycle(texts), 1):
        ids = tokenizer.encode(text).ids[: LENGTH + 1]  # slow: the whole file, for its first 257 tokens
        padded = ids + [PAD] * (LENGTH + 1 - len(ids))  # slow: padding is computed on like text
        logits = model(torch.tensor([padded[:-1]]))[0]  # slow: one row at a time
        losses = F.cross_entropy(logits[: len(ids) - 1], torch.tensor(ids[1:]), reduction="none")
        summed, right = 0.0, 0
        for position, target in enumerate(ids[1:]):
            summed += losses[position].item()  # slow: asks for a number, once per token
            right += logits[position].argmax().item() == target  # and again
        (losses.mean() / ROWS).backward()
        seen += len(ids) - 1
        print(f"loss {summed / (len(ids) - 1):.3f}, {right} of {len(ids) - 1} right")
        if count % ROWS == 0:  # as many rows to a step as in the fast way
            optimizer.step()
            optimizer.zero_grad()
            if seen >= arguments.tokens:
                break
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"the slow way: {seen} tokens in {seconds:.2f} s ({cpu:.2f} s of CPU), {seen / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
