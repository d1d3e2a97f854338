"""Model + loader -> checkpoints and events. Names are imported on first use: who only reads a run needs no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.training.checkpoint import Checkpoints
    from headrace.training.config import TrainConfig
    from headrace.training.hardware import pick_device
    from headrace.training.loop import Trainer, TrainResult
    from headrace.training.precision import default_precision
    from headrace.training.recipe import Recipe, build_trainer
    from headrace.training.recorder import Recorder
    from headrace.training.run_view import Run
    from headrace.training.saved import SavedRun, export_run, load_run

__all__ = [
    "Checkpoints",
    "Recipe",
    "Recorder",
    "Run",
    "SavedRun",
    "TrainConfig",
    "TrainResult",
    "Trainer",
    "build_trainer",
    "default_precision",
    "export_run",
    "load_run",
    "pick_device",
]

_HOMES = {
    "Checkpoints": "checkpoint",
    "Recipe": "recipe",
    "Recorder": "recorder",
    "Run": "run_view",
    "SavedRun": "saved",
    "TrainConfig": "config",
    "TrainResult": "loop",
    "Trainer": "loop",
    "build_trainer": "recipe",
    "default_precision": "precision",
    "export_run": "saved",
    "load_run": "saved",
    "pick_device": "hardware",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headrace.training' has no attribute {name!r}")
    value = getattr(import_module(f"headrace.training.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
