"""Tokenizes whole batches, but in every step. Usage: tokenize_batches.py tokenizer.json"""

import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

from tokenizers import Tokenizer

TEXT = "the river carries water over stones and under bridges to a mill that grinds corn for the town"
WORDS = TEXT.split()


def texts(count):
    for _ in range(count):
        yield [" ".join(random.choices(WORDS, k=400)) for _ in range(32)]


def main():
    random.seed(0)
    tokenizer = Tokenizer.from_file(sys.argv[1])
    tokenizer.enable_truncation(64)
    model = nn.Sequential(nn.Embedding(tokenizer.get_vocab_size(), 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for lines in list(texts(30)):
        batch = torch.tensor([row.ids for row in tokenizer.encode_batch(lines)])  # fault
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
