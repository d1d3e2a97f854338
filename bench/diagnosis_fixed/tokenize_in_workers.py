"""Reads tokens where workers tokenized. Usage: tokenize_in_workers.py tokenizer.json FOLDER"""

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
    torch.manual_seed(0)
    random.seed(0)
    folder = Path(sys.argv[2])
    if not (folder / "texts.jsonl").exists():
        texts = [" ".join(random.choices(WORDS, k=1500)) for _ in range(16 * 30)]
        (folder / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    store = headrace.prepare(folder / "texts.jsonl", out=folder / "tokens", tokenizer=sys.argv[1])  # once
    loader = headrace.Loader(folder / "tokens", seq_len=32, batch_size=16)
    model = nn.Sequential(nn.Embedding(store.vocab_size, 8), nn.Linear(8, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        batch = torch.from_numpy(next(loader).tokens)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
