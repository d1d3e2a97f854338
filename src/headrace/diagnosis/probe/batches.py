"""What the model is given: how many tokens, and how many of them are padding."""

from __future__ import annotations

from typing import Any

from .places import place  # noqa: TID252
from .recording import Recording  # noqa: TID252

LOOKED_AT = 32  # steps in which padding is counted; afterwards one in 16


def look_at(recording: Recording, args: Any, kwargs: Any) -> None:
    ids = first_ids(recording, args, kwargs)
    if ids is None:
        return
    recording.steps.tokens += ids.numel()
    count = recording.steps.count
    if ids.is_cpu and (count < LOOKED_AT or count % 16 == 0):
        mask = kwargs.get("attention_mask")
        count_padding(recording, ids, mask if getattr(mask, "shape", None) == ids.shape else None)


def first_ids(recording: Recording, args: Any, kwargs: Any) -> Any:
    """The first integer tensor with rows: what a language model reads."""
    torch = recording.torch
    for value in (*args, *kwargs.values()):
        if isinstance(value, dict):
            found = first_ids(recording, (), value)
            if found is not None:
                return found
        elif isinstance(value, torch.Tensor) and value.dim() >= 2 and value.dtype in (torch.int64, torch.int32):
            return value
    return None


def count_padding(recording: Recording, ids: Any, mask: Any) -> None:
    torch = recording.torch
    if ids.dim() != 2 or ids.shape[1] < 2:
        return
    with torch.no_grad():
        pads = mask.numel() - torch.count_nonzero(mask) if mask is not None else padding_in(torch, ids)
        recording.seen_ids += ids.numel()
        recording.seen_pads += int(torch._C.TensorBase.item(pads))


def padding_in(torch: Any, ids: Any) -> Any:
    """Without a mask: runs of one id at the same end of the rows."""
    return torch.maximum(runs(torch, ids), runs(torch, ids.flip(1)))


def runs(torch: Any, ids: Any) -> Any:
    pad = ids[:, -1].mode().values
    lengths = (ids == pad).flip(1).long().cumprod(1).sum(1)
    return (lengths * (lengths > 1)).sum()  # a single one may be the end of a text


def remember_padding(recording: Recording, frame: Any) -> None:
    """The line that asked a tokenizer to pad."""
    if recording.pad_place is None:
        recording.pad_place = list(place(frame))
