"""One contender in a process of its own: python -m training_rivals.run VERB NAME SPEC, in bench/."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
from typing import Any

import torch

from training_rivals.meter import Meter
from training_rivals.spec import Spec

HELD_OUT_ROWS = 16


def main() -> None:
    verb, name, text = sys.argv[1:]
    contender = importlib.import_module(f"training_rivals.{name}")
    if verb == "describe":
        result = describe(contender)
    else:
        result = measure(contender, Spec(**json.loads(text)), train=verb == "measure")
    # On a line of its own, after whatever the libraries print.
    print("\n" + json.dumps(result), flush=True)


def describe(contender: Any) -> dict[str, Any]:
    versions = [f"{package} {importlib.metadata.version(package)}" for package in contender.PACKAGES]
    return {"versions": versions, "torch": torch.__version__, "uses": contender.USES}


def measure(contender: Any, spec: Spec, *, train: bool) -> dict[str, Any]:
    torch.set_num_threads(spec.threads)
    torch.manual_seed(0)
    model = contender.build(spec)
    result: dict[str, Any] = {
        "parameters": sum(p.numel() for p in model.parameters()),  # a tied table comes once
        "first_loss": held_out_loss(contender, model, spec),
    }
    if train:
        meter = Meter(spec)
        contender.train(model, spec)
        result |= {**meter.result(), "loss": held_out_loss(contender, model, spec)}
    return result


@torch.no_grad()
def held_out_loss(contender: Any, model: Any, spec: Spec) -> float:
    """Row by row, so that it never needs more memory than training."""
    rows = torch.from_numpy(spec.held_out_rows(HELD_OUT_ROWS))
    was_training = model.training
    model.eval()
    losses = [float(contender.loss(model, row[None, :-1], row[None, 1:])) for row in rows]
    model.train(was_training)
    return sum(losses) / len(losses)


if __name__ == "__main__":
    main()
