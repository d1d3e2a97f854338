"""Text that is tokenized once, before the loop. Usage: tokenize_batches.py tokenizer.json FOLDER"""

import json
import random
import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

import headrace

TEXT = "the river carries water over stones and under bridges to a mill that grinds corn for the town"
WORDS = TEXT.split()


def main():
    random.seed(0)
    folder = Path(sys.argv[2])
    if not (folder / "texts.jsonl").exists():
        texts = [" ".join(random.choices(WORDS, k=400)) for _ in range(32 * 30)]
        (folder / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    store = headrace.prepare(folder / "texts.jsonl", out=folder / "tokens", tokenizer=sys.argv[1])  # once
    loader = headrace.Loader(folder / "tokens", seq_len=63, batch_size=32)
    model = nn.Sequential(nn.Embedding(store.vocab_size, 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        batch = torch.from_numpy(next(loader).tokens)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
