"""Every sample is a file. Usage: small_files.py FOLDER"""

import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.pt"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index])  # fault


def main():
    torch.manual_seed(0)
    folder = Path(sys.argv[1])
    for number in range(400):
        torch.save(torch.randint(64, (33,)), folder / f"{number}.pt")
    model = nn.Sequential(nn.Embedding(64, 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for batch in DataLoader(Files(folder), batch_size=32):
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
