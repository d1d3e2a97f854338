"""A model under torch.compile, in a plain loop."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

VOCAB, LENGTH, WIDTH, BATCH = 256, 64, 128, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, WIDTH)
        self.body = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        hidden = self.table(ids)
        return self.head(hidden + self.body(hidden))


def get_batch():
    starts = torch.randint(VOCAB, (BATCH, 1))
    rows = (starts + torch.arange(LENGTH + 1)) % VOCAB
    return rows[:, :-1], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--steps", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(Model(), backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        x, y = get_batch()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
