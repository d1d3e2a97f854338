"""Each way to make the CPU wait, once a step or as the comment says."""

import torch
import torch.nn as nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
total = torch.zeros((), device=device)
kept = torch.arange(4, device=device)
for step in range(100):
    x = torch.randn(4, 8).to(device)  # sync: to_device 1
    y = torch.randn(4, 8).cuda(non_blocking=True)  # sync: to_device_unpinned 1
    z = torch.randn(4, 8).pin_memory().cuda(non_blocking=True)
    out = model(x)
    loss = ((out - y - z) ** 2).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # sync: clip_grad 1
    optimizer.step()
    optimizer.zero_grad()
    total += loss.detach()
    weight = torch.tensor([0.5, step], device=device)  # sync: new_tensor 1
    picked = out[out > 0]  # sync: mask 1
    chosen = torch.masked_select(out, out > 0)  # sync: mask 1
    with torch.no_grad():
        x[x > 0] = 0.0
    places = (x > 0).nonzero()  # sync: nonzero 1
    where = torch.where(x > 0)  # sync: nonzero 1
    fine = torch.where(x > 0, x, 0.0)
    rows = x[torch.tensor([0, 1])]  # sync: cpu_index 1
    good = x[kept]
    ids = torch.unique(kept)  # sync: unique 1
    if loss > 3:  # sync: bool 1
        print("high")
    print("loss", loss)  # sync: print 1
    print(f"{loss:.2f} {float(total):.2f}")  # sync: item 2
    array = out.detach().cpu().numpy()  # sync: to_host 1
    numbers = kept.tolist()  # sync: tolist 1
    assert array.shape == (4, 8)
    assert numbers == [1, 1, 1, 1]
    for _ in range(3):
        good.sum().item()  # sync: item 3
    torch.cuda.synchronize()  # sync: synchronize 1
