"""DataLoader: pinned batches copied without blocking (in a thread too), and beside it one that forgot to pin."""

import threading

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def copy_ahead(batch, ready):
    with torch.cuda.stream(torch.cuda.Stream()):
        ready.append([tensor.to("cuda", non_blocking=True) for tensor in batch])


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = TensorDataset(torch.randn(400, 8), torch.randint(4, (400,)))
    pinned = DataLoader(data, batch_size=4, shuffle=True, pin_memory=True)
    workers = DataLoader(data, batch_size=4, num_workers=1, pin_memory=True)
    plain = DataLoader(data, batch_size=4)
    model = nn.Linear(8, 4).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for (x, y), ahead, (u, v) in zip(pinned, workers, plain, strict=True):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        u, v = u.to(device), v.to(device)  # sync: to_device 2
        ready = []
        thread = threading.Thread(target=copy_ahead, args=(ahead, ready))
        thread.start()
        thread.join()
        inputs, targets = torch.cat([x, u, ready[0][0]]), torch.cat([y, v, ready[0][1]])
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
