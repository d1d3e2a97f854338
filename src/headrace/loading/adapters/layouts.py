"""A batch as a dict of tensors, under the names that a training loop expects.

- "plain": `input_ids`, `targets` and `step`; with boundaries also `position_ids`, `doc_ids`, `cu_seqlens`, `loss_mask`.
- "hf": `input_ids` and `labels`, which are the same ids: Hugging Face models shift labels themselves. So the last
  target of a row, which only the token behind it has, is not trained on: one in `seq_len`.
- "hf-shifted": `shift_labels` too, all targets, for models whose loss takes them. Trainer passes them on only with
  `remove_unused_columns=False`.

With boundaries the two add `position_ids`, and labels that the loss mask leaves out are -100. Ids are int64, which
every loss takes, in memory of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headrace.errors import UsageError
from headrace.loading.device import place
from headrace.loading.feed import Batch

IGNORED = -100  # what torch's and Hugging Face's losses leave out
CPU = torch.device("cpu")

Tensors = dict[str, Any]
Layout = Callable[[Batch], Tensors]


def plain(batch: Batch) -> Tensors:
    return {name: value for name, value in place(batch, CPU, torch.int64)._asdict().items() if value is not None}


def hugging_face(batch: Batch) -> Tensors:
    shifted = hugging_face_shifted(batch)
    del shifted["shift_labels"]
    return shifted


def hugging_face_shifted(batch: Batch) -> Tensors:
    placed = place(batch, CPU, torch.int64)
    labels, targets = placed.input_ids.clone(), placed.targets
    if placed.loss_mask is not None:
        targets.masked_fill_(~placed.loss_mask, IGNORED)
        labels[:, 1:] = targets[:, :-1]
    tensors = {"input_ids": placed.input_ids, "labels": labels, "shift_labels": targets}
    if placed.position_ids is not None:
        tensors["position_ids"] = placed.position_ids.to(torch.int64)
    return tensors


LAYOUTS: dict[str, Layout] = {"plain": plain, "hf": hugging_face, "hf-shifted": hugging_face_shifted}


def checked_layout(name: str) -> str:
    if name not in LAYOUTS:
        raise UsageError(f"layout {name!r}: it must be one of {', '.join(LAYOUTS)}.")
    return name
