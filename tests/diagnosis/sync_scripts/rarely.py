"""Nothing to complain about: the loss is summed on the device and read every tenth step."""

import torch
import torch.nn as nn

torch.set_default_device("cuda")
model = nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters())
total = torch.zeros(())
for step in range(100):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.detach()
    if step % 10 == 0:
        print(step, total.item() / 10)  # rare: item 0.1
        total.zero_()
