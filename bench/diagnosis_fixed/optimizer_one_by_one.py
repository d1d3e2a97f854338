"""A deep narrow model whose optimizer takes all tensors at once."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 16), *[nn.Linear(16, 16) for _ in range(60)], nn.Linear(16, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
data = torch.randint(64, (4, 2, 17))

for step in range(30):
    batch = data[step % 4]
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
