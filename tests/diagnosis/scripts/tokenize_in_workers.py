"""A Dataset that tokenizes in the workers of its DataLoader. Usage: tokenize_in_workers.py tokenizer.json"""

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
        self.texts = [" ".join(random.choices(WORDS, k=1500)) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return torch.tensor(self.tokenizer.encode(self.texts[index]).ids[:33])  # fault


def main():
    torch.manual_seed(0)
    data = Lines(sys.argv[1], 16 * 30)
    model = nn.Sequential(nn.Embedding(data.tokenizer.get_vocab_size(), 8), nn.Linear(8, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(data, batch_size=16, num_workers=1):
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
