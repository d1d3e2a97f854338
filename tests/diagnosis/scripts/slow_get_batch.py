"""A generator of batches that parses its lines again and again."""

import json
import random

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

random.seed(0)
torch.manual_seed(0)
LINES = [json.dumps({"tokens": [random.randrange(64) for _ in range(2000)]}) for _ in range(50)]


def batches(count):
    for _ in range(count):
        rows = []
        for line in random.sample(LINES, 40):
            rows.append(json.loads(line)["tokens"][:33])  # fault
        yield torch.tensor(rows)


def train():
    model = nn.Sequential(nn.Embedding(64, 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(60):
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
