"""A loop as nanoGPT's: characters in a memory map, random windows, gradients clipped, the loss read every tenth step.

The model has the shape that nanoGPT's README gives for a CPU: 4 layers, 4 heads, 128 wide, 12 rows of 64.
"""

import math
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

BLOCK, BATCH, LAYERS, HEADS, WIDTH, VOCAB = 64, 12, 4, 4, 128, 65
torch.manual_seed(1337)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (part.view(rows, length, HEADS, -1).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(rows, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


def get_batch(data):
    starts = torch.randint(len(data) - BLOCK, (BATCH,))
    x = torch.stack([torch.from_numpy(data[i : i + BLOCK].astype(np.int64)) for i in starts])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + BLOCK].astype(np.int64)) for i in starts])
    return x, y


def learning_rate(step):
    return 1e-3 * 0.5 * (1.0 + math.cos(math.pi * min(step, 5000) / 5000))


def train(folder):
    (np.arange(1_000_000) * 7919 % VOCAB).astype(np.uint16).tofile(Path(folder) / "train.bin")
    data = np.memmap(Path(folder) / "train.bin", dtype=np.uint16, mode="r")
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    x, y = get_batch(data)
    step = 0
    while True:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        _, loss = model(x, y)
        x, y = get_batch(data)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            print(f"iter {step}: loss {loss.item():.4f}")
        step += 1


with tempfile.TemporaryDirectory() as folder:
    train(folder)
