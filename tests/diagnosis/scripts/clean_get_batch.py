"""As nanoGPT does it: tokens in a memory map, random windows, the loss read now and then. Usage: ... FOLDER"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

BLOCK, BATCH = 128, 16
path = Path(sys.argv[1]) / "train.bin"
(np.arange(100_000) * 7 % 64).astype(np.uint16).tofile(path)
data = np.memmap(path, dtype=np.uint16, mode="r")
torch.manual_seed(0)


def get_batch():
    starts = torch.randint(len(data) - BLOCK - 1, (BATCH,))
    rows = torch.stack([torch.from_numpy(data[i : i + BLOCK + 1].astype(np.int64)) for i in starts])
    return rows[:, :-1], rows[:, 1:]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 128)
        self.body = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
        self.head = nn.Linear(128, 64)

    def forward(self, tokens, targets):
        hidden = self.embedding(tokens)
        logits = self.head(hidden + self.body(hidden))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(40):
    loss = model(*get_batch())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
