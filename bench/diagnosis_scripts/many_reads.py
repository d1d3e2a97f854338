"""Reads a thousand values one by one in every step, beside a model of a few milliseconds."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(256, 128), nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 256))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randint(256, (16, 1001))

step = 0
while True:
    row = data[step % 16]
    losses = F.cross_entropy(model(row[:-1]), row[1:], reduction="none")
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    highest = max(value.item() for value in losses.detach())
    step += 1
