"""What can go wrong in a step, said so that a person knows what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from headrace.errors import TrainingFailed
from headrace.loading import Loader
from headrace.training.config import TrainConfig


def nonfinite(loss: float, norm: float, step: int, facts: dict[str, Any], config: TrainConfig) -> TrainingFailed:
    """The loss or the gradient of a step was no number. The weights never saw it: it was left out on the device."""
    what = f"loss of step {step:,} is {loss}"
    if math.isfinite(loss):
        what = f"gradient of step {step:,} has a norm of {norm} at a loss of {loss:.4g}"
    last = facts["loader_step"] - (facts["step"] - step) * config.gradient_accumulation
    batches = f"{last - config.gradient_accumulation}" + (f" to {last - 1}" if config.gradient_accumulation > 1 else "")
    return TrainingFailed(
        f"The {what} (learning rate {facts['lr']:.3g}, loader batch {batches}; see it with "
        f"Loader(...).batch_at({last - config.gradient_accumulation})). The weights were left as they were before it. "
        f"Go on from the last checkpoint with a lower --lr or a smaller --clip, or leave such steps out: "
        f"--nonfinite skip."
    )


@contextmanager
def explained(config: TrainConfig, loader: Loader) -> Iterator[None]:
    """Out of memory says what to lower."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise TrainingFailed(_out_of_memory(config, loader, str(error))) from error
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise TrainingFailed(_out_of_memory(config, loader, str(error))) from error
    except MemoryError as error:
        raise TrainingFailed(_out_of_memory(config, loader, "the host has none left")) from error


def _out_of_memory(config: TrainConfig, loader: Loader, said: str) -> str:
    local, accumulation = loader.local_batch_size, config.gradient_accumulation
    advice = []
    if local > 1:
        half = loader.batch_size // 2
        advice.append(
            f"--batch-size {half} --gradient-accumulation {accumulation * 2} (the same step in smaller parts)"
        )
    if not config.checkpoint_activations:
        advice.append("--checkpoint-activations (less memory, about a quarter more time)")
    if config.precision == "fp32" and torch.cuda.is_available():
        advice.append("--mixed-precision bf16")
    if config.optimizer != "adamw8bit":
        advice.append("--use-8bit-optim")
    advice += [f"--seq-len {loader.seq_len // 2}", "a smaller --size"]
    listed = "\n  ".join(advice)
    reason = said.strip().splitlines()[0][:200] if said.strip() else "no more memory"
    return (
        f"Out of memory with a batch of {local} x {loader.seq_len:,} tokens: {reason}\n"
        f"The last checkpoint is kept. Lower one of these, the first ones first:\n  {listed}"
    )
