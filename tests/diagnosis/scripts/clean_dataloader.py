"""Tokens in memory and a DataLoader, with an evaluation at the end."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = (torch.arange(160 * 129) * 5 % 64).reshape(160, 129)
loader = DataLoader(TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Embedding(64, 128), nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(2):
    total = torch.zeros(())
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).transpose(1, 2), y)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"epoch {epoch}: loss {total.item() / len(loader):.3f}")

model.eval()
with torch.no_grad():
    print(f"accuracy {(model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]).float().mean().item():.1%}")
    F.cross_entropy(model(tokens[:8, :-1]).transpose(1, 2), tokens[:8, 1:])
