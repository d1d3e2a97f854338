"""Logging: what is printed, logged, or written for TensorBoard and Weights & Biases."""

from __future__ import annotations

import builtins
import functools
from threading import get_ident
from typing import Any

from .places import caller  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import Stand, wrap  # noqa: TID252


def install(recording: Recording) -> None:
    """print alone: the other hooks wait for their modules."""
    original = builtins.print
    clock = recording.clock

    def printing(*args: Any, **kwargs: Any) -> None:
        if get_ident() != clock.thread or recording.torch is None:
            return original(*args, **kwargs)
        before = clock.enter("logging")
        try:
            return original(*args, **kwargs)
        finally:
            recording.note("logging", "print", clock.leave(before), caller(2))

    functools.update_wrapper(printing, original)
    builtins.print = Stand(printing)


def watch_logging(module: Any, recording: Recording) -> None:
    wrap(recording, module.Logger, "handle", "logging", "logging")


def watch_tensorboard(module: Any, recording: Recording) -> None:
    for name in ("add_scalar", "add_scalars", "add_histogram", "add_text", "add_image", "add_figure", "flush"):
        wrap(recording, module.SummaryWriter, name, "logging")


def watch_wandb(module: Any, recording: Recording) -> None:
    wrap(recording, module.Run, "log", "logging", "wandb.log")


def watch_tqdm(module: Any, recording: Recording) -> None:
    wrap(recording, module.tqdm, "display", "logging", "tqdm")


HOOKS = {
    "logging": watch_logging,
    "torch.utils.tensorboard.writer": watch_tensorboard,
    "tqdm.std": watch_tqdm,
    "wandb.sdk.wandb_run": watch_wandb,
}
