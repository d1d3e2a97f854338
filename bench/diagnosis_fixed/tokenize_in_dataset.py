"""Reads tokens where a Dataset tokenized in __getitem__. Usage: tokenize_in_dataset.py tokenizer.json FOLDER"""

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
        texts = [" ".join(random.choices(WORDS, k=150)) for _ in range(32 * 30)]
        (folder / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    store = headrace.prepare(folder / "texts.jsonl", out=folder / "tokens", tokenizer=sys.argv[1])  # once
    loader = headrace.Loader(folder / "tokens", seq_len=64, batch_size=32)
    model = nn.Sequential(nn.Embedding(store.vocab_size, 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        batch = next(loader)
        x, y = torch.from_numpy(batch.input_ids), torch.from_numpy(batch.targets)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
