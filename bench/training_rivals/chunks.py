"""The train tokens as a torch Dataset of rows, for the contenders that bring a DataLoader."""

import numpy as np
import torch


class Chunks(torch.utils.data.Dataset):
    def __init__(self, spec, length):
        self.tokens, self.length, self.step = spec.tokens(), length, spec.length

    def __len__(self):
        return (len(self.tokens) - 1) // self.step

    def __getitem__(self, index):
        return torch.from_numpy(self.tokens[index * self.step : index * self.step + self.length].astype(np.int64))
