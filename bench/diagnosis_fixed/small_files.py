"""All samples in one file, which is mapped. Usage: small_files.py FOLDER"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, folder):
        self.rows = np.load(folder / "samples.npy", mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.rows[index]))


def main():
    torch.manual_seed(0)
    folder = Path(sys.argv[1])
    np.save(folder / "samples.npy", torch.randint(64, (400, 33)).numpy())
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
