"""TrainConfig: everything a run is told apart from its model and its data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.training.schedule import check_schedule

SCHEDULES = ("cosine", "wsd", "linear", "constant")
OPTIMIZERS = ("adamw", "adamw8bit", "muon")
PRECISIONS = ("fp32", "bf16", "fp16")
NONFINITE = ("stop", "skip")


@dataclass(kw_only=True)
class TrainConfig:
    """A step is one change of the weights: `gradient_accumulation` batches of the loader."""

    steps: int
    out: str | Path
    gradient_accumulation: int = 1
    optimizer: str = "adamw"
    lr: float = 3e-4
    min_lr_ratio: float = 0.1
    schedule: str = "cosine"
    warmup: int | None = None  # steps; None: a fiftieth of the run, 2,000 at most
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0
    precision: str = "fp32"
    device: str = "auto"
    compile: bool | str = "auto"
    checkpoint_activations: bool = False
    seed: int = 0
    log_every: int = 10
    eval_every: int | None = None  # None: a tenth of the run
    eval_batches: int = 16
    sample_every: int | None = None  # None: with every second evaluation
    checkpoint_every: int | None = None  # None: with every evaluation
    keep_last: int = 3
    keep_best: int = 1
    nonfinite: str = "stop"
    tensorboard: bool = True
    wandb: str | None = None  # the name of a Weights & Biases project

    def __post_init__(self) -> None:
        self.out = Path(self.out)
        for name in ("steps", "gradient_accumulation", "log_every", "eval_batches", "keep_last"):
            _at_least(name, getattr(self, name), 1)
        for name in ("eval_every", "sample_every", "checkpoint_every"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        for name, choices in (
            ("schedule", SCHEDULES),
            ("optimizer", OPTIMIZERS),
            ("precision", PRECISIONS),
            ("nonfinite", NONFINITE),
        ):
            if getattr(self, name) not in choices:
                raise UsageError(f"{name} {getattr(self, name)!r}: it must be one of {', '.join(choices)}.")
        self._fill_in()

    def _fill_in(self) -> None:
        if self.warmup is None:
            self.warmup = min(2000, self.steps // 50)
        check_schedule(
            kind=self.schedule, peak=self.lr, warmup=self.warmup, total=self.steps, min_ratio=self.min_lr_ratio
        )
        if self.eval_every is None:
            self.eval_every = max(1, self.steps // 10)
        if self.sample_every is None:
            self.sample_every = 2 * self.eval_every
        if self.checkpoint_every is None:
            self.checkpoint_every = self.eval_every

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "out": str(self.out)}


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"{name} {value}: it must be at least {least}.")
