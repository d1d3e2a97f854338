"""Saves everything after every fourth step. Usage: checkpoint_every_step.py FOLDER"""

import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(2000, 128), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randint(64, (4, 4, 17))

for step in range(25):
    batch = data[step % 4]
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, Path(sys.argv[1]) / "latest.pt")
