"""What bench/training.py trains on: the tokens of a prepared dataset in flat files, and the weights all begin with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from headrace.storage import TRAIN, VAL, read_metadata

BLOCK = 8 << 20


def flat_tokens(dataset: Path, split: str, work: Path) -> Path:
    """The tokens of all shards of a split in one file."""
    metadata = read_metadata(dataset)
    flat = work / f"{metadata.tokenizer.name}-{metadata.total_tokens}-{split}.bin"
    if not flat.is_file():
        work.mkdir(parents=True, exist_ok=True)
        part = flat.with_suffix(".part")
        with open(part, "wb") as out:
            for shard in metadata.of_split(split):
                with open(dataset / f"{shard.name}.bin", "rb") as file:
                    shutil.copyfileobj(file, out, BLOCK)
        os.replace(part, flat)
    return flat


def first_weights(dataset: Path, size: str, work: Path) -> Path:
    """A Llama folder with our transformer of this size, as `headrace train` would begin with it."""
    from headrace.models import build_model, export_llama

    folder = work / f"llama-{size}-{read_metadata(dataset).vocab_size}"
    if not (folder / "config.json").is_file():
        export_llama(build_model("transformer", size, vocab_size=read_metadata(dataset).vocab_size), folder)
    return folder


def prepared(dataset: Path | None, work: Path) -> Path:
    """The dataset named, or the Python library's source with the default tokenizer."""
    if dataset is not None:
        return dataset
    from headrace import prepare

    prepare("python-stdlib", out=work / "python-stdlib")
    return work / "python-stdlib"


def spec_for(dataset: Path, work: Path, *, size: str, shape: str, **rest: Any) -> dict[str, Any]:
    """The fields of training_rivals.spec.Spec."""
    rows, length = map(int, shape.split("x"))
    return {
        "dataset": str(dataset.resolve()),
        "flat": str(flat_tokens(dataset, TRAIN, work).resolve()),
        "held_out": str(flat_tokens(dataset, VAL, work).resolve()),
        "dtype": read_metadata(dataset).dtype,
        "llama": str(first_weights(dataset, size, work).resolve()),
        "out": str((work / f"run-{os.getpid()}").resolve()),  # two benchmarks may share WORK
        "rows": rows,
        "length": length,
        **rest,
    }
