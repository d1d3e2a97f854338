"""A generator of batches from lines that were parsed once. Usage: slow_get_batch.py FOLDER"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

random.seed(0)
torch.manual_seed(0)
LINES = [json.dumps({"tokens": [random.randrange(64) for _ in range(2000)]}) for _ in range(50)]
PREPARED = Path(sys.argv[1]) / "tokens.npy"
if not PREPARED.exists():  # once, before training
    np.save(PREPARED, np.array([json.loads(line)["tokens"] for line in LINES]))


def batches(count):
    tokens = np.load(PREPARED, mmap_mode="r")
    for _ in range(count):
        rows = random.sample(range(len(tokens)), 40)
        yield torch.from_numpy(tokens[rows, :33])


def train():
    model = nn.Sequential(nn.Embedding(64, 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(60):
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
