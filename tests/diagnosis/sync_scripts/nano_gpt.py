"""A loop as in nanoGPT: memory-mapped tokens, pinned batches, tied weights, evaluation, checkpoints, loss.item()."""

import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

device, batch, length, vocab = "cuda", 4, 16, 64
out = Path(sys.argv[1])
tokens = torch.randint(vocab, (10_000,))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(vocab, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(32, vocab, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", torch.triu(torch.ones(length, length, dtype=torch.bool), 1))

    def forward(self, x, y):
        logits = self.head(self.block(self.table(x), src_mask=self.mask))
        return logits, F.cross_entropy(logits.view(-1, vocab), y.view(-1), ignore_index=-1)


def get_batch():
    starts = torch.randint(len(tokens) - length - 1, (batch,))
    x = torch.stack([tokens[i : i + length] for i in starts])
    y = torch.stack([tokens[i + 1 : i + 1 + length] for i in starts])
    x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    return x, y


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.zeros(5)
    for k in range(5):
        losses[k] = model(*get_batch())[1].item()
    model.train()
    return losses.mean()


torch.manual_seed(1337)
model = GPT().to(device)
assert model.head.weight is model.table.weight
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=1e-3, fused=True)
scaler = torch.amp.GradScaler("cuda", enabled=False)
model = torch.compile(model)
X, Y = get_batch()
for it in range(1000):
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * min(1.0, (it + 1) / 10)
    if it % 500 == 0:
        print(f"step {it}: val loss {estimate_loss():.4f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out / "ckpt.pt")
    for _ in range(2):
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            logits, loss = model(X, Y)
            loss = loss / 2
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    lossf = loss.item() * 2  # sync: item 1
    print(f"iter {it}: loss {lossf:.4f}")
