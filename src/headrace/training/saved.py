"""A model out of a run's folder, with its tokenizer: for sampling, export and your own scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from headrace.errors import StoreError, UsageError
from headrace.models import build_model, export_llama, export_safetensors
from headrace.models.transformer import Transformer
from headrace.tokenizers import Tokenizer, load_tokenizer
from headrace.training.checkpoint import Checkpoints
from headrace.training.checkpoint_files import LoadedCheckpoint
from headrace.training.checkpoint_manifest import Manifest
from headrace.training.hardware import pick_device
from headrace.training.run_folder import CHECKPOINTS, TOKENIZER


class SavedRun(NamedTuple):
    model: nn.Module
    tokenizer: Tokenizer
    manifest: Manifest
    device: torch.device

    def write(self, prompt: str, max_new_tokens: int, **sampling: Any) -> str:
        """How the model goes on from the prompt, up to the end of the document that it writes."""
        eos = self.tokenizer.special.eos
        ids = self.tokenizer.reference().encode([prompt.encode()])[0].tolist()
        ids = ids or [eos or 0]  # a text begins where another has ended
        tokens = torch.tensor([ids], device=self.device)
        stop = [] if eos is None else [eos]
        model: Any = self.model
        made = model.generate(tokens, max_new_tokens, stop_ids=stop, **sampling)[0, len(ids) :].tolist()
        return self.tokenizer.decode(made[: made.index(eos)] if eos in made else made)


def load_run(folder: str | Path, *, checkpoint: str | int = "latest", device: str = "auto") -> SavedRun:
    """The model of a run: its latest checkpoint, the best one by validation loss, or that of a step."""
    folder = Path(folder)
    found = _find(folder, checkpoint)
    told = found.manifest.model
    if not told:
        raise StoreError(
            f"The checkpoints of {folder} do not say what model they are of: it was none of Headrace's. Build it "
            f"yourself and load {found.path / 'model.safetensors'}."
        )
    options = {} if told.get("context") is None else {"context": told["context"]}
    model = build_model(told["name"], told["size"], vocab_size=told["vocab_size"], **{**options, **told["options"]})
    model.load_state_dict(found.model_state)
    chosen = pick_device(device)
    return SavedRun(model.to(chosen).eval(), load_tokenizer(folder / TOKENIZER), found.manifest, chosen)


def _find(folder: Path, which: str | int) -> LoadedCheckpoint:
    if not (folder / CHECKPOINTS).is_dir():
        raise StoreError(f"{folder} has no checkpoints, so it is no run, or one that was stopped too early. "
                         f"Make one with: headrace train DATA --out {folder}")  # fmt: skip
    checkpoints = Checkpoints(folder / CHECKPOINTS)
    if isinstance(which, int):
        return checkpoints.at(which, model_only=True)
    found = checkpoints.best(model_only=True) if which == "best" else None
    found = found or checkpoints.latest(model_only=True)
    if found is None:
        raise StoreError(
            f"{folder} has no checkpoint yet. Let the run reach its first one, or lower --checkpoint-every."
        )
    return found


def export_run(folder: str | Path, out: Path, *, kind: str, checkpoint: str | int = "best") -> int:
    """Write a run's model as a Llama folder for transformers, or its weights alone; gives the step it had."""
    if out.is_file() and out.suffix != ".safetensors":
        raise UsageError(f"{out} is a file; --out names a folder, or a file NAME.safetensors.")
    saved = load_run(folder, checkpoint=checkpoint, device="cpu")
    if kind == "safetensors":
        export_safetensors(saved.model, out)
    elif isinstance(saved.model, Transformer):
        export_llama(saved.model, out, tokenizer=saved.tokenizer)
    else:
        raise UsageError(f"{type(saved.model).__name__} cannot be a Llama. Use --format safetensors.")
    return saved.manifest.step
