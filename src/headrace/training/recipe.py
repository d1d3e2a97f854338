"""A run from what a user names: data, model and settings become a Trainer in a folder of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError
from headrace.loading import Loader
from headrace.loading.live import LiveText
from headrace.loading.mixture import Mix
from headrace.models import MODELS, build_model
from headrace.storage import VAL
from headrace.training.backend import setup_backend
from headrace.training.config import TrainConfig
from headrace.training.hardware import pick_device
from headrace.training.loop import Trainer
from headrace.training.parallel import Group
from headrace.training.run_folder import RunFolder

if TYPE_CHECKING:
    from headrace.tokenizers import Tokenizer

LIVE_STEPS = 1000  # text that is tokenized on the way has no known length
VAL_SEED = 0  # evaluation takes the first batches of one fixed shuffle: the same ones always, from all over the data
HOLDOUT = 0.01


@dataclass(kw_only=True)
class Recipe:
    """What `headrace train` is told. `steps` or `epochs` or `max_chunks` says how long; one epoch if none does."""

    data: Mix | LiveText
    train: dict[str, Any] = field(default_factory=dict)  # TrainConfig without steps
    model: str = "transformer"
    size: str = "micro"
    model_options: dict[str, Any] = field(default_factory=dict)
    seq_len: int | None = None  # None: what the data was prepared for, or the model's context if that is shorter
    batch_size: int = 16
    steps: int | None = None
    epochs: float | None = None
    max_chunks: int | None = None
    documents: bool = False
    packing: str = "concat"
    holdout: float = HOLDOUT
    seed: int = 0


def build_trainer(
    recipe: Recipe,
    *,
    force: bool = False,
    report: Callable[[str], None] = print,
    group: Group | None = None,
) -> Trainer:
    """Open the data, make the model, and claim the run's folder, or go on in it."""
    group = group or Group()
    vocab_size, stored, tokenizer = _describe_data(recipe.data)
    setup_backend(pick_device(group.device(recipe.train.get("device", "auto"))))  # before the model takes memory
    if recipe.train.get("checkpoint_activations"):
        _check_recompute(recipe.model)
        recipe = replace(recipe, model_options={**recipe.model_options, "recompute": True})
    model = build_model(recipe.model, recipe.size, vocab_size=vocab_size, seed=recipe.seed, **recipe.model_options)
    context = getattr(model, "context", None)
    seq_len = recipe.seq_len or min(length for length in (stored, context, 1024 if stored is None else None) if length)
    if context is not None and seq_len > context:
        raise UsageError(
            f"seq_len {seq_len:,}: {recipe.model} {recipe.size} has a context of {context:,} tokens. "
            f"Use --seq-len {context}, or a model with a longer one."
        )
    recipe = replace(recipe, seq_len=seq_len)
    loader, val_loader = _open_loaders(recipe, group)
    accumulation = recipe.train.get("gradient_accumulation", 1)
    config = TrainConfig(steps=_steps(recipe, loader, accumulation), seed=recipe.seed, **recipe.train)
    description = _description(recipe, vocab_size, context, tokenizer)
    facts = {"recipe": description["extra"], "train": config.as_dict()}
    group.on_main(lambda: _claim(RunFolder(Path(config.out)), facts, tokenizer, force=force, report=report))
    return Trainer(model, loader, config, val_loader=val_loader, tokenizer=tokenizer, describe=description, group=group)


def _claim(
    folder: RunFolder, facts: dict[str, Any], tokenizer: Tokenizer, *, force: bool, report: Callable[[str], None]
) -> None:
    folder.claim(facts, force=force, report=report)
    folder.keep_tokenizer(tokenizer)


def _check_recompute(model: str) -> None:
    if model not in MODELS:
        raise UsageError(f"--checkpoint-activations is for the models of Headrace; {model} has to do it itself.")


def _describe_data(data: Mix | LiveText) -> tuple[int, int | None, Tokenizer]:
    """Vocabulary, prepared chunk size (None for live text) and tokenizer."""
    if isinstance(data, LiveText):
        return data.tokenizer.vocab_size, None, data.tokenizer
    from headrace.loading.mixture import Mixture
    from headrace.storage import TokenStore

    store = TokenStore(Mixture(data).names[0])
    return store.vocab_size, store.metadata.chunk_size, store.tokenizer


def _open_loaders(recipe: Recipe, group: Group) -> tuple[Loader, Loader | None]:
    """Of training batches each rank takes its share; whole batches of validation go round."""
    assert recipe.seq_len is not None
    shape: dict[str, Any] = {
        "seq_len": recipe.seq_len,
        "batch_size": recipe.batch_size,
        "seed": recipe.seed,
        "documents": recipe.documents,
    }
    ranks: dict[str, Any] = {"rank": group.rank, "world_size": group.world_size}
    if isinstance(recipe.data, LiveText):
        return Loader(recipe.data, **shape, **ranks), None
    shape |= {"packing": recipe.packing, "holdout": recipe.holdout}
    train = Loader(recipe.data, **shape, **ranks, max_chunks=recipe.max_chunks)
    if not recipe.holdout and not train.has_split(VAL):
        return train, None
    return train, Loader(recipe.data, **{**shape, "seed": VAL_SEED, "split": VAL, "batch_size": _val_batch(recipe)})


def _val_batch(recipe: Recipe) -> int:
    """Small enough that a small validation split still makes a batch."""
    return min(8, recipe.batch_size)


def _steps(recipe: Recipe, loader: Loader, accumulation: int) -> int:
    if recipe.steps is not None:
        return recipe.steps
    if isinstance(recipe.data, LiveText) and recipe.max_chunks is None:
        return LIVE_STEPS
    epochs = 1.0 if recipe.epochs is None else recipe.epochs
    if not (math.isfinite(epochs) and epochs > 0):
        raise UsageError(f"epochs {epochs}: it must be a number above 0.")
    whole = recipe.max_chunks if isinstance(recipe.data, LiveText) else loader.chunks_per_epoch
    assert whole is not None
    steps = math.floor(epochs * whole / (loader.batch_size * accumulation))
    if steps < 1:
        raise UsageError(
            f"{whole:,} chunks of {loader.seq_len:,} tokens do not fill one step of {loader.batch_size} x "
            f"{accumulation} of them. Lower --batch-size or --gradient-accumulation, or prepare more text."
        )
    return steps


def _description(recipe: Recipe, vocab_size: int, context: int | None, tokenizer: Tokenizer) -> dict[str, Any]:
    """What a checkpoint says about its run: enough to build the model again and to know the data."""
    if isinstance(recipe.data, LiveText):
        names, shares = [recipe.data.name], None
    else:
        from headrace.loading.mixture import Mixture

        mixture = Mixture(recipe.data)
        names = list(mixture.names)
        known = Mixture({Path(name).name: 1.0 for name in names}) if len(names) == 1 else mixture  # it may have moved
        shares = known.state()
    model = {
        "name": recipe.model,
        "size": recipe.size,
        "vocab_size": vocab_size,
        "context": context,
        "options": recipe.model_options,
    }
    extra = {
        "model": model,
        "data": shares or names,
        "seq_len": recipe.seq_len,
        "batch_size": recipe.batch_size,
        "documents": recipe.documents,
        "packing": recipe.packing,
        "holdout": recipe.holdout,
        "seed": recipe.seed,
    }
    return {"model": model, "tokenizer_sha256": tokenizer.sha256, "datasets": names, "extra": extra}
