"""Lines of text that are tokenized one by one inside the loop. Usage: tokenize_per_sample.py tokenizer.json"""

import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

from tokenizers import Tokenizer

TEXT = "the river carries water over stones and under bridges to a mill that grinds corn for the town"
WORDS = TEXT.split()
random.seed(0)
torch.manual_seed(0)
texts = [" ".join(random.choices(WORDS, k=120)) for _ in range(400)]
tokenizer = Tokenizer.from_file(sys.argv[1])
model = nn.Sequential(nn.Embedding(tokenizer.get_vocab_size(), 16, sparse=False), nn.Linear(16, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(30):
    rows = []
    for text in random.sample(texts, 32):
        ids = tokenizer.encode(text).ids  # fault
        rows.append(ids[:64])
    batch = torch.tensor(rows)
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten() % 64)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
