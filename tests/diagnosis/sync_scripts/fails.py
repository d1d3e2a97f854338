"""Ends with an error in the fifth step, which must not lose what was seen before."""

import torch

weight = torch.nn.Parameter(torch.ones(3, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(10):
    loss = (weight**2).sum()
    loss.backward()
    optimizer.step()
    loss.item()  # sync: item 1
    if step == 4:
        raise ValueError("the fifth step")
