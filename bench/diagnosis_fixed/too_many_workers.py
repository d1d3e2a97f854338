"""As many workers as there are cores; made for one core."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 16 * 40

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randint(64, (4000,), generator=generator).sort().values[:33]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(64, 16), nn.Linear(16, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Samples(), batch_size=16, num_workers=1)
    for batch in loader:
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
