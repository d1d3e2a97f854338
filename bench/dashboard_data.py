"""A folder of runs to look at: many short ones and one of a million steps, written by the real Recorder."""

from __future__ import annotations

import math
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from headrace.training.recorder import Recorder

SPANS = ("data_wait", "host_to_device", "forward", "backward", "optimizer", "sync", "checkpoint", "evaluation", "other")
SHARES = (0.01, 0.01, 0.25, 0.5, 0.1, 0.01, 0.02, 0.05, 0.05)
PER_STEP = 4096  # tokens
SECONDS = 0.05  # of a step
EVALUATIONS = 100  # in a run
DIFFERENT = 10  # runs that are made; the others are copies of them


def make_folder(folder: Path, *, runs: int, steps: int, big: int) -> Path:
    """Once: what is there is taken again."""
    whole = folder / f"whole-{runs}-{steps}-{big}"
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        for number in range(runs):
            place = folder / "runs" / f"run-{number:03d}"
            if number < DIFFERENT:
                write_run(place, steps, seed=number)
            else:
                shutil.copytree(folder / "runs" / f"run-{number % DIFFERENT:03d}", place)
        write_run(folder / "runs" / "big", big, seed=runs)
        whole.touch()
    return folder / "runs"


def write_run(folder: Path, steps: int, seed: int) -> None:
    with Recorder(folder, tensorboard=False, curves=False) as recorder:
        for event in events(steps, seed):
            recorder(event)
    facts = {
        "recipe": {"model": MODEL, "data": [[0, ["data/web"]]], "seed": seed},
        "train": {"lr": 3e-4, "steps": steps},
    }
    (folder / "run.json").write_bytes(msgspec.json.encode(facts))


MODEL = {"name": "transformer", "size": "small", "vocab_size": 32768, "context": 1024, "options": {}}


def events(steps: int, seed: int) -> Iterator[dict[str, Any]]:
    """With --log-every 1: a line for every step."""
    chance = random.Random(seed)
    began = time.time() - steps * SECONDS - 3600 * seed
    config = {"lr": 3e-4, "steps": steps, "log_every": 1, "nonfinite": "stop", "out": "runs/x"}
    about = {"steps": steps, "parameters": 25_300_000, "device": "cpu", "tokens_per_step": PER_STEP, "peak_flops": 1e11}
    yield {"t": began, "kind": "run", "step": 0, **about, "config": config, "model": MODEL, "datasets": ["data/web"]}
    for step in range(1, steps + 1):
        t = round(began + step * SECONDS, 3)
        yield {"t": t, "kind": "step", "step": step, **numbers(step, steps, chance)}
        if step % max(1, steps // EVALUATIONS) == 0:
            loss = loss_at(step, steps) + 0.1
            yield {
                "t": t,
                "kind": "eval",
                "step": step,
                "val_loss": loss,
                "perplexity": math.exp(loss),
                "accuracy": 0.4,
            }
            yield {"t": t, "kind": "sample", "step": step, "prompt": "def f(", "expected": "x):", "predicted": "self):"}
    yield {"t": t, "kind": "end", "step": steps, "tokens": steps * PER_STEP, "loss": loss, "val_loss": loss}


def numbers(step: int, steps: int, chance: random.Random) -> dict[str, Any]:
    seconds = SECONDS * (1 + 0.1 * chance.random())
    loss = loss_at(step, steps) + 0.2 * chance.random()
    return {
        "steps": 1,
        "lr": 3e-4 * (1 - step / (steps + 1)),
        "tokens": step * PER_STEP,
        "seconds": seconds,
        "spans": {name: share * seconds * chance.random() for name, share in zip(SPANS, SHARES, strict=True)},
        "max_wait": 0.002,
        "cpu": round(0.8 + 0.2 * chance.random(), 4),
        "memory": 3_200_000_000 + 4096 * step,
        "loss": loss,
        "losses": [loss],
        "grad_norm": 0.5 + chance.random(),
        "tokens_per_second": PER_STEP / seconds,
        "mfu": 0.4 + 0.1 * chance.random(),
        "data_wait_share": 0.01 * chance.random(),
        "skipped": 0,
    }


def loss_at(step: int, steps: int) -> float:
    return 3.0 + 7.0 * math.exp(-step / (steps / 20))
