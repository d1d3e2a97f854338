"""Leaves padding out of the loss on the device: what is masked cannot be the highest."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
data = torch.randint(64, (4, 16, 257))
masks = torch.rand(4, 16, 256) > 0.1

for step in range(30):
    batch, mask = data[step % 4], masks[step % 4]
    per_token = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten(), reduction="none")
    optimizer.zero_grad()
    per_token.mean().backward()
    optimizer.step()
    flat = mask.flatten()
    worst = [torch.where(flat, per_token.detach(), -torch.inf).topk(3) for _ in range(200)]
