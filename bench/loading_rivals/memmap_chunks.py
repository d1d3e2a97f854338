"""The map-style dataset that most training scripts write: one np.memmap, one slice for each sample."""

import numpy as np
import torch


class MemmapChunks(torch.utils.data.Dataset):
    def __init__(self, spec):
        self.tokens, self.length, self.count = spec.tokens(), spec.length, spec.chunks()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        start = index * self.length
        row = self.tokens[start : start + self.length + 1].astype(np.int64)
        return torch.from_numpy(row[:-1]), torch.from_numpy(row[1:])


def endless(loader):
    while True:
        yield from loader
