"""Run by torchrun in test_parallel.py: everything that two ranks compute, in one launch.

Arguments: the dataset, and the folder for the runs, in which `alone` was trained by one process.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from headrace.training import Recipe, build_trainer
from headrace.training.parallel import Group, start_group

STEPS, MORE = 4, 6
FIRST = {"ddp": "ddp-1", "fsdp": "fsdp-1"}
GO_ON = (("ddp", "alone"), ("fsdp", "alone"), ("fsdp", "ddp"), ("fsdp", "fsdp"), ("ddp", "fsdp"))
SMALL: dict[str, Any] = {"size": "nano", "seq_len": 32, "model_options": {"width": 32, "ffn": 64, "layers": 2}}


def recipe(data: str, out: Path, *, steps: int = STEPS, accumulation: int = 1, documents: bool = False) -> Recipe:
    train = {
        "out": str(out),
        "lr": 3e-3,
        "schedule": "constant",
        "gradient_accumulation": accumulation,
        "log_every": 1,
        "eval_every": STEPS,
        "eval_batches": 3,  # more than a multiple of the ranks
        "tensorboard": False,
        "device": "cpu",
        "clip": 0.5,  # below the norms here, so that the clipping is compared too
    }
    return Recipe(data=[data], batch_size=4, steps=steps, documents=documents, train=train, **SMALL)


def trained(made: Recipe, group: Group | None = None) -> dict[str, Any]:
    """Losses and norms of each step, the validation, and how often ranks had something to record."""
    trainer = build_trainer(made, report=lambda text: None, group=group)
    events: list[dict[str, Any]] = []
    trainer.listen(events.append)
    result = trainer.run()
    steps = [event for event in events if event["kind"] == "step"]
    return {
        "losses": [event["loss"] for event in steps],
        "norms": [event["grad_norm"] for event in steps],
        "val_loss": result.val_loss,
        "step": result.step,
        "tokens": result.tokens,
        "events": len(events),
        "val_tokens": [event["val_tokens"] for event in events if event["kind"] == "eval"],
        "samples": [event["predicted"] for event in events if event["kind"] == "sample"],
    }


def main() -> None:
    torch.set_num_threads(1)
    data, runs = sys.argv[1], Path(sys.argv[2])
    found: dict[str, Any] = {}
    with start_group("ddp", "cpu") as group:
        for kind in ("ddp", "fsdp"):
            group.kind = kind  # a process can be in one group only, and starting it is what costs
            for accumulation in (1, 2):
                name = f"{kind}-{accumulation}"
                found[name] = trained(recipe(data, runs / name, accumulation=accumulation), group)
            found[f"{kind}-documents"] = trained(recipe(data, runs / f"{kind}-documents", documents=True), group)
        for kind, first in GO_ON:
            group.kind, out = kind, runs / f"{kind}-after-{first}"
            group.on_main(lambda out=out, first=first: copy(runs / FIRST.get(first, first), out))  # type: ignore[misc]
            found[out.name] = trained(recipe(data, out, steps=MORE), group)
        (runs / f"rank-{group.rank}.json").write_text(json.dumps(found))


def copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


if __name__ == "__main__":
    main()
