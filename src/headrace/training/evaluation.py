"""How good a model is: loss, perplexity and accuracy on a fixed part of the data, and text that it writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headrace.loading import Batch, Loader
from headrace.models import LanguageModel, forward_options
from headrace.tokenizers import Tokenizer
from headrace.training.parallel import Group
from headrace.training.precision import Precision


class Evaluated(NamedTuple):
    loss: float
    accuracy: float | None
    tokens: int

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 80.0))


class TextSample(NamedTuple):
    prompt: str
    expected: str
    predicted: str


def evaluate(
    model: nn.Module,
    loader: Loader,
    batches: int,
    precision: Precision,
    device: torch.device,
    group: Group | None = None,
) -> Evaluated:
    """The first so many batches of the loader, the same ones every time. The host waits once, at the end.

    Ranks take turns, so every one has a loader of whole batches. All make as many forward passes, because a model in
    shards needs all of them for each; what is over does not count.
    """
    group = group or Group()
    batches = max(1, min(batches, loader.steps_per_epoch))
    total: Tensor | None = None
    taken = forward_options(model)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), precision.autocast():
            for turn in range(0, batches, group.world_size):
                step = turn + group.rank
                sums = _sums(model, loader.batch_at(min(step, batches - 1)), device, taken)
                sums = sums if step < batches else sums * 0
                total = sums if total is None else total + sums
    finally:
        model.train(was_training)
    assert total is not None
    loss, correct, count = group.total(total).tolist()
    return Evaluated(loss / count, None if math.isnan(correct) else correct / count, int(count))


def _sums(model: nn.Module, batch: Batch, device: torch.device, taken: set[str]) -> Tensor:
    """Sum of the losses, right predictions and number of targets, on the device."""
    tokens, targets = _on_device(batch.input_ids, device), _on_device(batch.targets, device)
    extras = {name: tensor for name, tensor in boundary_tensors(batch, device).items() if name in taken}
    if isinstance(model, LanguageModel):
        found = model.evaluate(tokens, targets, **extras)
        return torch.stack([found.loss_sum.double(), found.correct.double(), found.count.double()])
    loss = model(tokens, targets, **extras).double()  # a model of the user's own has a loss and nothing more
    count = torch.full_like(loss, targets.numel())
    return torch.stack([loss * count, torch.full_like(loss, math.nan), count])


def boundary_tensors(batch: Any, device: torch.device) -> dict[str, Tensor]:
    """What a model takes beside tokens and targets when the batch knows its documents."""
    found = batch.boundaries
    if found is None:
        return {}
    return {"doc_ids": _on_device(found.doc_ids, device), "loss_mask": _on_device(found.loss_mask, device)}


def _on_device(array: Any, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor.to(device) if tensor.dtype == torch.bool else tensor.to(device, torch.int64)


def write_samples(
    model: nn.Module,
    loader: Loader,
    tokenizer: Tokenizer,
    device: torch.device,
    *,
    count: int = 3,
    prompt: int = 48,
    length: int = 48,
) -> list[TextSample]:
    """Beginnings from the evaluation data, how they go on there, and how the model goes on."""
    if not isinstance(model, LanguageModel):
        return []
    prompt = min(prompt, loader.seq_len // 2)
    length = min(length, loader.seq_len - prompt)
    rows = _rows(loader, count)
    generated = model.generate(_on_device(rows[:, :prompt], device), length, temperature=0.0)
    return [
        TextSample(
            tokenizer.decode(row[:prompt].tolist()),
            tokenizer.decode(row[prompt : prompt + length].tolist()),
            tokenizer.decode(_continuation(ids, prompt)),
        )
        for row, ids in zip(rows, generated.cpu(), strict=True)
    ]


def _rows(loader: Loader, count: int) -> Any:
    import numpy as np

    found: list[Any] = []
    step = 0
    while len(found) < count:
        found.extend(loader.batch_at(step).tokens)
        step += 1
    return np.stack(found[:count])


def _continuation(ids: Tensor, prompt: int) -> Sequence[int]:
    found: list[int] = ids[prompt:].tolist()
    return found
