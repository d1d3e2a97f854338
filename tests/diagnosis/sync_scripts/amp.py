"""float16 with a GradScaler: the scaler itself waits, unless the optimizer is fused. Two optimizers, one step."""

import torch
import torch.nn as nn

model = nn.LSTM(8, 16, batch_first=True).cuda()
head = nn.Linear(16, 1).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
fused = torch.optim.Adam(head.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
inputs = torch.randn(2, 5, 8, device="cuda")
for _ in range(100):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = head(model(inputs)[0]).float().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # sync: grad_scaler 1
    scaler.step(fused)
    scaler.update()
    optimizer.zero_grad()
    fused.zero_grad()
