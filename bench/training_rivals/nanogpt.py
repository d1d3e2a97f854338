"""A loop with the structure of nanoGPT's train.py: get_batch from a memmap before the backward pass, as it does there.

nanoGPT asks for the fused AdamW on CUDA only, so a run as published is fused=False here; the other way is measured too.
"""

import math

import numpy as np
import torch

from training_rivals import plain_llama
from training_rivals.spec import BETAS, CLIP, LOG_EVERY, LR, MIN_LR_RATIO, WEIGHT_DECAY

PACKAGES = ("torch",)
USES = "nanoGPT's loop and get_batch, plain Llama with fused qkv and F.cross_entropy on all logits"


def build(spec):
    return plain_llama.load(spec.llama)


def loss(model, inputs, targets):
    return model(inputs, targets)[1]


def train(model, spec):
    optimizer = make_optimizer(model, spec.fused)
    model.train()
    inputs, targets = get_batch(spec)
    for step in range(spec.all_steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, spec)
        _, found = model(inputs, targets)
        inputs, targets = get_batch(spec)
        found.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % LOG_EVERY == 0:
            print(f"step {step}: loss {found.item():.4f}")


def make_optimizer(model, fused):
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, **({"fused": True} if fused else {}))


def learning_rate(step, spec):
    if step < spec.warmup:
        return LR * (step + 1) / (spec.warmup + 1)
    done = (step - spec.warmup) / (spec.all_steps - spec.warmup)
    return LR * (MIN_LR_RATIO + (1 - MIN_LR_RATIO) * 0.5 * (1 + math.cos(math.pi * done)))


def get_batch(spec):
    data = spec.tokens()
    starts = torch.randint(len(data) - spec.length, (spec.rows,))
    return rows_at(data, starts, spec.length), rows_at(data, starts + 1, spec.length)


def rows_at(data, starts, length):
    return torch.stack([torch.from_numpy(data[i : i + length].astype(np.int64)) for i in starts])
