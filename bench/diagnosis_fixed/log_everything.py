"""Writes a line of the log for every sample of every hundredth step."""

import logging

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
data = torch.randint(64, (4, 8, 33))

for step in range(30):
    batch = data[step % 4]
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        for sample in range(300):
            log.info("step %d, sample %d of %d", step, sample, 300)
