"""One cell of bench/models.py in a process of its own: `python -m models_cell SPEC`, and its answer is the last line.

Nothing is imported but headrace. A cell is one of
- train: forward and backward of `rows` rows of `length` tokens. The first pass has its memory measured, the second its
  time. Memory is what the process takes at the peak beyond what it had with the weights and their gradients.
- generate: single tokens after `length` others, and the bytes of the cache that they need.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import time
from typing import Any

import torch
from torch import Tensor

from headrace.models import build_model
from headrace.training.backend import setup_backend
from headrace.training.precision import build_precision

NEW = 32  # tokens that are timed in generation
PIECE = 1024  # tokens of a prompt that are read at once
CPU = torch.device("cpu")


def main() -> None:
    spec = json.loads(sys.argv[1])
    if spec["memory_limit"]:
        # Of data alone: torch reserves far more addresses than it ever uses.
        resource.setrlimit(resource.RLIMIT_DATA, (spec["memory_limit"], spec["memory_limit"]))
    torch.set_num_threads(spec["threads"])
    setup_backend(CPU)
    length = spec["length"] + (NEW if spec["verb"] == "generate" else 0)
    model = build_model(spec["model"], spec["size"], vocab_size=spec["vocab"], context=length, **spec["options"])
    verbs = {"train": train, "generate": generate}
    print(json.dumps({"parameters": model.parameter_count(), **verbs[spec["verb"]](model, spec)}))


def train(model: Any, spec: dict[str, Any]) -> dict[str, Any]:
    step = make_step(model, spec)
    step(1, 8)  # so that every gradient is there
    before = settled_memory()
    step(spec["rows"], spec["length"])
    peak = peak_memory() - before
    for parameter in model.parameters():
        parameter.grad.zero_()
    wall, cpu = time.perf_counter(), time.process_time()
    step(spec["rows"], spec["length"])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    tokens = spec["rows"] * spec["length"]
    return {"wall": wall / tokens, "cpu": cpu / tokens, "memory": peak, "memory_per_token": peak / tokens}


def make_step(model: Any, spec: dict[str, Any]) -> Any:
    precision = build_precision(spec["precision"], CPU, report=lambda text: None)

    def step(rows: int, length: int) -> None:
        ids = random_tokens(rows, length + 1, spec["vocab"])
        with precision.autocast():
            loss = model(ids[:, :-1], ids[:, 1:])
        precision.backward(loss)

    return step


@torch.no_grad()
def generate(model: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """As `model.generate` does it, with the likeliest token taken."""
    model.eval()
    precision = build_precision(spec["precision"], CPU, report=lambda text: None)
    with precision.autocast():
        cache = model.new_cache(1, spec["length"] + NEW)
        for piece in random_tokens(1, spec["length"], spec["vocab"]).split(PIECE, 1):
            states = model.hidden(piece, cache=cache)
        token = choose(model, states)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(NEW):
            token = choose(model, model.hidden(token, cache=cache))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall / NEW, "cpu": cpu / NEW, "memory": tensor_bytes(cache)}


def choose(model: Any, states: Tensor) -> Tensor:
    return torch.nn.functional.linear(states[:, -1:], model.output_weight).argmax(-1)


def tensor_bytes(found: Any, seen: set[int] | None = None) -> int:
    """Of all tensors in a cache, whatever it is made of; what two of them share counts once."""
    seen = set() if seen is None else seen
    if isinstance(found, Tensor):
        storage = found.untyped_storage()
        new = storage.data_ptr() not in seen
        seen.add(storage.data_ptr())
        return storage.nbytes() if new else 0
    if isinstance(found, dict):
        return sum(tensor_bytes(value, seen) for value in found.values())
    if isinstance(found, (list, tuple)):
        return sum(tensor_bytes(value, seen) for value in found)
    slots = {name: getattr(found, name) for name in getattr(found, "__slots__", ()) if hasattr(found, name)}
    return tensor_bytes({**getattr(found, "__dict__", {}), **slots}, seen) if not callable(found) else 0


def random_tokens(rows: int, length: int, vocab: int) -> Tensor:
    return torch.randint(vocab, (rows, length), generator=torch.Generator().manual_seed(0))


def settled_memory() -> int:
    """What the process holds once freed blocks are given back; the peak begins anew from here."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets VmHWM
    return of_status("VmRSS")


def peak_memory() -> int:
    return of_status("VmHWM")


def of_status(name: str) -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
