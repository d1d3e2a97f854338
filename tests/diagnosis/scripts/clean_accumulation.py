"""Gradients gathered over four small batches, and a schedule."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
tokens = (torch.arange(96 * 129) * 3 % 64).reshape(12, 8, 129)
model = nn.Sequential(nn.Embedding(64, 128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)

for step in range(15):
    for micro in range(4):
        batch = tokens[(step * 4 + micro) % 12]
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()) / 4
        loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
