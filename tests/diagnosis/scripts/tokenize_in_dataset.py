"""A Dataset that tokenizes in __getitem__. Usage: tokenize_in_dataset.py tokenizer.json"""

import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset

from tokenizers import Tokenizer

TEXT = "the river carries water over stones and under bridges to a mill that grinds corn for the town"
WORDS = TEXT.split()


class Lines(Dataset):
    def __init__(self, path, count):
        random.seed(0)
        self.tokenizer = Tokenizer.from_file(path)
        self.texts = [" ".join(random.choices(WORDS, k=150)) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        ids = self.tokenizer.encode(self.texts[index]).ids[:65]  # fault
        return torch.tensor(ids[:-1]), torch.tensor(ids[1:])


def main():
    torch.manual_seed(0)
    data = Lines(sys.argv[1], 32 * 30)
    model = nn.Sequential(nn.Embedding(data.tokenizer.get_vocab_size(), 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=32, shuffle=True):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
