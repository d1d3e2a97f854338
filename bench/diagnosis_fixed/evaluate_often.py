"""Goes through a quarter of the validation set every five steps."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
train, val = torch.randint(64, (8, 8, 33)), torch.randint(64, (40, 8, 33))


@torch.no_grad()
def evaluate():
    model.eval()
    total = 0.0
    part = val[::4]
    for batch in part:
        logits = model(batch[:, :-1])
        total += F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    model.train()
    return total / len(part)


for step in range(41):
    batch = train[step % 8]
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step}: val {evaluate():.3f}")
