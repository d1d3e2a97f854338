"""A model so small that a step takes a few milliseconds: what is done once a step weighs most here."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

LENGTH, ROWS, WIDTH, VOCAB = 64, 4, 64, 256
torch.manual_seed(0)
ids = (torch.arange(4000 * (LENGTH + 1)) * 7919 % VOCAB).view(4000, LENGTH + 1)
loader = DataLoader(TensorDataset(ids), batch_size=ROWS, shuffle=True)
layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
model = nn.Sequential(
    nn.Embedding(VOCAB, WIDTH), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(WIDTH, VOCAB)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

step = 0
while True:
    for (batch,) in loader:
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
