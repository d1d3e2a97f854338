"""The loss is cut off from the model: it runs, and learns nothing."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
batch = torch.randint(64, (8, 33))

for _ in range(40):
    logits = model(batch[:, :-1]).detach()
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    loss.requires_grad_()
    optimizer.zero_grad()
    loss.backward()  # fault
    optimizer.step()
