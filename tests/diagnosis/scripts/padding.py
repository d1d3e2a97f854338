"""Short texts in rows of a fixed, generous length."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

LENGTH, PAD = 256, 0
torch.manual_seed(0)


def padded(count):
    rows = torch.full((count, LENGTH), PAD)
    for row in rows:
        size = int(torch.randint(20, 80, ()))
        row[:size] = torch.randint(1, 64, (size,))
    return rows


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 64)
        self.body = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.head = nn.Linear(64, 64)

    def forward(self, tokens):
        return self.head(self.body(self.embedding(tokens)))


data = padded(64)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(25):
    batch = data[step % 4 * 16 : step % 4 * 16 + 16]
    logits = model(batch[:, :-1])  # fault
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
