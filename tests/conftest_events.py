"""Events of a run as a Trainer sends them, for the tests of everything that listens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

SPANS = ("data_wait", "host_to_device", "forward", "backward", "optimizer", "sync", "checkpoint", "evaluation", "other")
EVERY = 10  # steps per interval
PER_STEP = 4096  # tokens


def run_event(step: int = 0, steps: int = 1000, **more: Any) -> dict[str, Any]:
    return {
        "t": 1.0,
        "kind": "run",
        "step": step,
        "steps": steps,
        "parameters": 25_300_000,
        "device": "cpu",
        "peak_flops": 1e12,
        "tokens_per_step": PER_STEP,
        "config": {"lr": 3e-4, "out": "runs/x"},
        "model": {"name": "transformer", "size": "small", "vocab_size": 512, "context": 64, "options": {}},
        "datasets": ["data/web", "data/code"],
        **more,
    }


def step_event(step: int, **more: Any) -> dict[str, Any]:
    """Half a second for ten steps: a quarter forward, half backward, the rest in parts."""
    shares = (0.01, 0.01, 0.25, 0.5, 0.1, 0.01, 0.02, 0.05, 0.05)
    loss = loss_at(step)
    return {
        "t": 1.0 + step,
        "kind": "step",
        "step": step,
        "steps": EVERY,
        "loss": loss,
        "losses": [loss] * EVERY,
        "lr": 3e-4 * (1 - step / 2000),
        "grad_norm": 0.9,
        "tokens": step * PER_STEP,
        "tokens_per_second": EVERY * PER_STEP / 0.5,
        "mfu": 0.41,
        "seconds": 0.5,
        "spans": {name: share * 0.5 for name, share in zip(SPANS, shares, strict=True)},
        "data_wait_share": 0.01,
        "max_wait": 0.002,
        "cpu": 0.87,
        "memory": 3_200_000_000,
        "skipped": 0,
        **more,
    }


def eval_event(step: int, **more: Any) -> dict[str, Any]:
    loss = loss_at(step) + 0.1
    told = {"val_loss": loss, "perplexity": math.exp(loss), "accuracy": 0.36, "val_tokens": 999}
    return {"t": 1.0 + step, "kind": "eval", "step": step, "tokens": step * PER_STEP, **told, **more}


def sample_event(step: int, predicted: str = " a mat") -> dict[str, Any]:
    told = {"prompt": "the cat\nsat on", "expected": " the mat", "predicted": predicted}
    return {"t": 1.0 + step, "kind": "sample", "step": step, **told}


def end_event(step: int) -> dict[str, Any]:
    return {"t": 1.0 + step, "kind": "end", "step": step, "tokens": step * PER_STEP, "loss": 3.0, "val_loss": 3.1}


def loss_at(step: int) -> float:
    return 3.0 + 7.0 * math.exp(-step / 100)


def a_run(last: int, *, first: int = 0, steps: int = 1000, eval_every: int = 100) -> Iterator[dict[str, Any]]:
    """From the step `first` to `last`, in the order of the loop: numbers of an interval come one interval late."""
    yield run_event(first, steps)
    late: dict[str, Any] | None = None
    for step in range(first + EVERY, last + 1, EVERY):
        if late:
            yield late
        late = step_event(step)
        if step % eval_every == 0:
            yield eval_event(step)
            yield sample_event(step)
            yield {"t": 1.0 + step, "kind": "checkpoint", "step": step, "folder": "runs/x/checkpoints"}
    if late:
        yield late
    if last == steps:
        yield end_event(last)
