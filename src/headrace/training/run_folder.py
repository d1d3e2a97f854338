"""runs/NAME: what a run is (run.json), and everything it writes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import StoreError, UsageError
from headrace.files import write_atomically
from headrace.training.checkpoint_folder import find_checkpoints, lock_folder

if TYPE_CHECKING:
    from headrace.tokenizers import Tokenizer

FILE = "run.json"
CHECKPOINTS, TOKENIZER = "checkpoints", "tokenizer"
OWN = (
    FILE,
    CHECKPOINTS,
    TOKENIZER,
    "tensorboard",
    "events.jsonl",
    "metrics_history.json",
    "text_samples.json",
    "curves.png",
    "report.html",
    "wandb",
    "wandb_id.txt",
)
# May change when a run goes on: they say how it is run, not what it is, or they are what a person changes when a loss
# is no number or memory runs out.
FREE = {
    "batch_size",
    "checkpoint_activations",
    "clip",
    "gradient_accumulation",
    "lr",
    "min_lr_ratio",
    "out",
    "precision",
    "recompute",
    "schedule",
    "weight_decay",
    "steps",
    "warmup",
    "log_every",
    "eval_every",
    "eval_batches",
    "sample_every",
    "checkpoint_every",
    "keep_last",
    "keep_best",
    "device",
    "compile",
    "tensorboard",
    "wandb",
    "nonfinite",
}


class RunFolder:
    """A folder that belongs to one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, facts: dict[str, Any], *, force: bool, report: Callable[[str], None]) -> None:
        """Begin here, or go on if this is the same run; anything else is refused with the difference."""
        if self._holds_something_else():
            raise UsageError(
                f"{self.path} holds other files and is no run of Headrace. Choose another folder with --out."
            )
        with self._held():
            if force:
                self._start_over()
            self._go_on_or_begin(msgspec.json.decode(msgspec.json.encode(facts)), report)

    def _go_on_or_begin(self, facts: dict[str, Any], report: Callable[[str], None]) -> None:
        before = self._read() if find_checkpoints(self.path / CHECKPOINTS) else None
        if before is not None:
            lines = list(_differences(before, facts))
            if lines:
                listed = "\n  ".join(lines)
                raise UsageError(
                    f"{self.path} holds a run with other settings:\n  {listed}\nRun it as it was to go on, choose "
                    f"another --out, or start over with --force."
                )
            if before["train"]["steps"] != facts["train"]["steps"]:
                report(
                    f"The run had {before['train']['steps']:,} steps before and has {facts['train']['steps']:,} now."
                )
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / FILE, msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Nobody else trains here meanwhile; the run itself then holds the folder of its checkpoints."""
        folder = self.path / CHECKPOINTS
        if not folder.is_dir():
            yield
            return
        with lock_folder(folder):
            yield

    def keep_tokenizer(self, tokenizer: Tokenizer) -> None:
        """So that the run is whole without its data."""
        if not (self.path / TOKENIZER).is_dir():
            tokenizer.save(self.path / TOKENIZER)

    def _read(self) -> dict[str, Any] | None:
        path = self.path / FILE
        try:
            found: dict[str, Any] = msgspec.json.decode(path.read_bytes())
            return found
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise StoreError(f"{path} is damaged: {error}. Restore it, or start over with --force.") from error

    def _holds_something_else(self) -> bool:
        return self.path.is_dir() and not (self.path / FILE).exists() and any(self.path.iterdir())

    def _start_over(self) -> None:
        """Deletes only what a run writes."""
        if not (self.path / FILE).exists():
            return
        for name in OWN:
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _differences(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name in sorted({*before, *now} - FREE):
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name}: {old!r} then, {new!r} now"
