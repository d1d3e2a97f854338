"""DistributedDataParallel over gloo, as torchrun starts it: every rank reads its own part of the data."""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCAB, LENGTH, WIDTH = 64, 64, 64


class Counting(Dataset):
    def __init__(self, rows, pause):
        self.rows, self.pause = rows, pause

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        if self.pause:
            time.sleep(self.pause)  # fault: slow_rank
        return (index + torch.arange(LENGTH + 1)) % VOCAB


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, WIDTH)
        self.body = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        return self.head(self.body(self.table(ids)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["none", "slow_rank"], default="none")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    slow = args.fault == "slow_rank" and rank == 1
    dataset = Counting(16 * args.steps * dist.get_world_size(), 0.002 if slow else 0.0)
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset, shuffle=True))
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, batch in enumerate(loader):
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
