"""Model + loader -> checkpoints and events."""

from headrace.training.checkpoint import Checkpoints
from headrace.training.config import TrainConfig
from headrace.training.hardware import pick_device
from headrace.training.loop import Trainer, TrainResult
from headrace.training.precision import default_precision
from headrace.training.recipe import Recipe, build_trainer
from headrace.training.recorder import Recorder
from headrace.training.saved import SavedRun, export_run, load_run

__all__ = [
    "Checkpoints",
    "Recipe",
    "Recorder",
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
