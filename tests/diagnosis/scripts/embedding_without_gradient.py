"""A model that looks its embedding up under no_grad, so that the table is never trained."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 32)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64))

    def forward(self, tokens):
        with torch.no_grad():
            found = self.embedding(tokens)
        return self.head(found)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
batch = torch.arange(264).reshape(8, 33) % 64

for _ in range(40):
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()  # fault
    optimizer.step()
