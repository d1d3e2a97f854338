"""The whole training step under torch.compile: forward, backward and the optimizer in one function."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

VOCAB, LENGTH, WIDTH, BATCH = 256, 64, 128, 16


def make_model():
    return nn.Sequential(
        nn.Embedding(VOCAB, WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, VOCAB)
    )


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
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @torch.compile(backend=args.backend)
    def train_step(x, y):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    for step in range(args.steps):
        loss = train_step(*get_batch())
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
