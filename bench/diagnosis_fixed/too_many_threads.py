"""Asks torch for as many threads as there are cores; made for one core."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Embedding(64, 64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.randint(64, (4, 16, 33))

for step in range(15):
    batch = data[step % 4]
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
