"""A plain PyTorch loop over prepared tokens: packed rows, gathered ahead, and no number asked for inside the loop.

python examples/train_the_fast_way.py [FOLDER] [--tokens N]

The same model, learning rate, rows of a step and number of tokens as in examples/train_the_slow_way.py. No Trainer: the
loop is all there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch

import headrace as hr
from headrace.loading.device import DeviceFeeder

LENGTH, ROWS = 256, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the dataset goes (default: a temporary folder)")
    parser.add_argument("--tokens", type=int, default=4096, help="train on so many")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.folder is not None:
        train(arguments.folder, arguments.tokens)
        return
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder) / "stdlib", arguments.tokens)


def train(folder: Path, tokens: int) -> None:
    began = time.perf_counter()
    store = hr.prepare("python-stdlib", out=folder)  # once; the second time it returns at once
    prepared = time.perf_counter() - began
    model = hr.build_model("transformer", "nano", vocab_size=store.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader = hr.Loader(folder, seq_len=LENGTH, batch_size=ROWS)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)

    losses, started, cpu = [], time.perf_counter(), time.process_time()
    for batch in DeviceFeeder(loader, device):
        loss = model(batch.input_ids, batch.targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())  # stays on the device
        if (batch.step + 1) * ROWS * LENGTH >= tokens:
            break
    values = torch.stack(losses).tolist()  # the only time that numbers are asked for
    seconds, cpu, seen = time.perf_counter() - started, time.process_time() - cpu, len(losses) * ROWS * LENGTH
    for step, value in enumerate(values):
        print(f"step {step + 1}: loss {value:.3f}")
    print(f"prepared {store.total_tokens} tokens in {prepared:.2f} s, once")
    print(f"the fast way: {seen} tokens in {seconds:.2f} s ({cpu:.2f} s of CPU), {seen / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
