"""What bench/loading.py measures on: whole shards of a prepared dataset, and the same tokens as one flat file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
from loading_run import Contender

from headrace.storage import TRAIN, read_metadata, write_metadata

BLOCK = 8 << 20


def cut_dataset(source: Path, tokens: int, work: Path) -> Path:
    """A dataset of the first train shards that hold so many tokens together, linked, not copied."""
    metadata, taken, total = read_metadata(source), [], 0
    for shard in metadata.of_split(TRAIN):
        if total < tokens:
            taken.append(shard)
            total += shard.tokens
    folder = work / f"loading-{metadata.tokenizer.name}-{total}"
    if not (folder / "metadata.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in (f"{shard.name}.{suffix}" for shard in taken for suffix in ("bin", "idx")):
            (folder / name).symlink_to((source / name).resolve())
        counts = {
            "total_tokens": total,
            "num_chunks": total // metadata.chunk_size,
            "documents": sum(shard.documents for shard in taken),
            "val_tokens": 0,
            "val_documents": 0,
        }
        write_metadata(folder, msgspec.structs.replace(metadata, shards=taken, **counts))
    return folder


def flatten(dataset: Path) -> Path:
    """The tokens of all shards in one file, which is how most ways to read tokens want them."""
    flat = dataset / "flat" / "train.bin"
    if not flat.is_file():
        flat.parent.mkdir(exist_ok=True)
        part = flat.with_suffix(".part")
        with open(part, "wb") as out:
            for shard in read_metadata(dataset).of_split(TRAIN):
                with open(dataset / f"{shard.name}.bin", "rb") as file:
                    shutil.copyfileobj(file, out, BLOCK)
        os.replace(part, flat)
    return flat


def spec_for(dataset: Path, flat: Path, one: Contender, rows: int, length: int) -> dict[str, Any]:
    """The fields of loading_rivals.spec.Spec; contenders that read the same files share a folder."""
    metadata = read_metadata(dataset)
    return {
        "dataset": str(dataset.resolve()),
        "flat": str(flat.resolve()),
        "folder": str((dataset / "rivals" / f"{one.files or one.name}-{length}").resolve()),
        "dtype": metadata.dtype,
        "eos": -1 if metadata.eos_token_id is None else metadata.eos_token_id,
        "pad": -1 if metadata.pad_token_id is None else metadata.pad_token_id,
        "rows": rows,
        "length": length,
    }


def warm(places: list[Path]) -> None:
    """Read files, and the files directly in folders, once: then they are in the page cache."""
    for place in places:
        for path in [place] if place.is_file() else place.iterdir():
            if path.is_file():
                read_through(path)


def read_through(path: Path) -> None:
    with open(path, "rb") as file:
        while file.read(BLOCK):
            pass
