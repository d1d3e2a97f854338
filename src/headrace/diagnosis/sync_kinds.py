"""The kinds of sync: what the CPU waits for, and what to write instead. One table."""

from __future__ import annotations

import msgspec


class Kind(msgspec.Struct, kw_only=True, frozen=True):
    title: str
    advice: str
    copy: bool = False  # data goes to the device; else the CPU waits for a result


KINDS = {
    "item": Kind(
        title="a number is read from the GPU",
        advice="Keep it on the device (total += loss.detach()) and read it once per log interval.",
    ),
    "bool": Kind(
        title="a branch depends on a tensor on the GPU",
        advice="Write it without a branch (torch.where, or multiply by the condition), or decide from a value that the "
        "CPU already has.",
    ),
    "print": Kind(
        title="a tensor on the GPU is printed",
        advice="Print once per log interval, and then a number: loss.item().",
    ),
    "tolist": Kind(
        title="a tensor on the GPU becomes a list",
        advice="Collect on the device (append tensor.detach()) and convert once: torch.cat(parts).tolist().",
    ),
    "nonzero": Kind(
        title="nonzero: the size of its result depends on values",
        advice="Use the three-argument torch.where(mask, a, b), or torch.nonzero_static with a fixed size.",
    ),
    "mask": Kind(
        title="a boolean mask picks elements: the size of the result depends on values",
        advice="Keep the shape fixed: torch.where(mask, x, 0), masked_fill, or (x * mask).sum() / mask.sum(); for a "
        "loss, cross_entropy(..., ignore_index=...).",
    ),
    "unique": Kind(
        title="unique: the size of its result depends on values",
        advice="Do it on the CPU while the batch is made, or use a sort and comparisons of fixed shape.",
    ),
    "equal": Kind(
        title="two tensors on the GPU are compared into one bool",
        advice="Take the check out of the loop, or keep it on the device: (a == b).all() and read it when you log.",
    ),
    "repeat_interleave": Kind(
        title="repeat_interleave must know the sum of the repeats",
        advice="Give output_size=... which the CPU knows from the shapes.",
    ),
    "bincount": Kind(
        title="bincount must know the largest value",
        advice="Use torch.zeros(n, device=x.device).scatter_add_(0, x, ones): its size is fixed.",
    ),
    "to_host": Kind(
        title="a tensor is copied to the CPU, which waits for it",
        advice='Use .to("cpu", non_blocking=True) into pinned memory, record a torch.cuda.Event, and read it after '
        "event.synchronize() a step later; or copy once per log interval.",
    ),
    "to_device": Kind(
        title="a blocking copy to the GPU",
        advice="Pin the batch (DataLoader(pin_memory=True) or .pin_memory()) and copy with "
        ".to(device, non_blocking=True).",
        copy=True,
    ),
    "to_device_unpinned": Kind(
        title="non_blocking=True from memory that is not pinned",
        advice="Pin the batch first (DataLoader(pin_memory=True) or .pin_memory()): from ordinary memory the CPU does "
        "part of the copy itself.",
        copy=True,
    ),
    "new_tensor": Kind(
        title="a tensor is made of Python numbers on the GPU",
        advice='Make it once before the loop, or on the device: torch.full((), x, device="cuda") and torch.arange need '
        "no copy.",
        copy=True,
    ),
    "cpu_index": Kind(
        title="a tensor on the GPU is indexed with one on the CPU",
        advice="Move the index with the batch (pinned, non_blocking=True), or make it with device=x.device.",
        copy=True,
    ),
    "synchronize": Kind(
        title="the script waits for the GPU itself",
        advice="Take it out. Only timing needs it: torch.cuda.Event(enable_timing=True), read a step later, does that.",
    ),
    "save": Kind(
        title="a checkpoint is written",
        advice="Every tensor is copied to the CPU: save less often, or from a copy on the CPU in a thread.",
    ),
    "grad_scaler": Kind(
        title="GradScaler reads whether a gradient overflowed",
        advice="Use bfloat16, which needs no GradScaler, or an optimizer with fused=True, which decides on the device.",
    ),
    "clip_grad": Kind(
        title="clip_grad_norm_ reads whether the norm is finite",
        advice="Leave error_if_nonfinite=False, and look at the norm it returns once per log interval.",
    ),
    "other": Kind(
        title="an operation waits for the GPU",
        advice="Look which values the CPU needs in this line, and keep them on the device.",
    ),
}
INSIDE = {"torch/amp/grad_scaler.py": "grad_scaler", "torch/nn/utils/clip_grad.py": "clip_grad"}


def kind_of(recorded: str, through: str) -> str:
    """A kind of its own for what torch does in the user's name."""
    return INSIDE.get(through.rpartition(":")[0], recorded)


# Inside a library its settings are what the user can change.
SETTINGS = {
    ("transformers/trainer.py", "bool"): "Give TrainingArguments(logging_nan_inf_filter=False).",
    ("transformers/trainer.py", "item"): "Log less often: TrainingArguments(logging_steps=...).",
    ("accelerate/utils/operations.py", "to_device"): "Give TrainingArguments(dataloader_pin_memory=True, "
    'accelerator_config={"non_blocking": True}).',
}


def advice_for(kind: str, through: str) -> str:
    return SETTINGS.get((through.rpartition(":")[0], kind), KINDS[kind].advice)
