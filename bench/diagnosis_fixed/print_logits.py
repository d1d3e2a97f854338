"""Prints tensors in every hundredth step."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
data = torch.randint(64, (4, 8, 65))

for step in range(40):
    batch = data[step % 4]
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print("step", step, "logits", logits)
