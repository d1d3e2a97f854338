"""A line for each dataset of a folder: finished, in preparation, stopped, or damaged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from headrace.dashboard.data_folder import PLAN, WORK, Stamp, find_datasets, stamp_of
from headrace.dashboard.prepare_progress import Preparations
from headrace.errors import HeadraceError
from headrace.storage import Metadata, read_metadata

PREPARATIONS = Preparations()  # shared, so that no log is followed twice

EMPTY: dict[str, Any] = {
    "state": "stopped",
    "tokens": None,
    "documents": None,
    "chunks": None,
    "chunk_size": None,
    "tokenizer": None,
    "bytes": None,
    "shards": None,
    "share": None,
    "eta_seconds": None,
    "mb_per_s": None,
    "updated": None,
    "problem": None,
}


def dataset_summaries(folder: Path) -> list[dict[str, Any]]:
    """Of all datasets of a folder, by name; nothing is read again that has not changed."""
    return summaries_of(find_datasets(folder))


def summaries_of(datasets: Mapping[str, Path]) -> list[dict[str, Any]]:
    return [summarise(name, path) for name, path in datasets.items()]


def summarise(name: str, folder: Path) -> dict[str, Any]:
    """Tokens, documents, bytes and shards count all splits; chunks are those that training draws from.

    A dataset that cannot be read has a `problem` that says why.
    """
    try:
        stamp = stamp_of(folder)
        row = _finished(folder, stamp) if stamp is not None else _unfinished(folder)
    except (HeadraceError, OSError, ValueError, TypeError, OverflowError) as error:
        row = {**EMPTY, "problem": str(error) or type(error).__name__}
    return {"name": name, **row}


@lru_cache(maxsize=4096)
def _finished(folder: Path, stamp: Stamp) -> dict[str, Any]:
    metadata: Metadata = read_metadata(folder)
    return EMPTY | {
        "state": "ready",
        "tokens": metadata.total_tokens + metadata.val_tokens,
        "documents": metadata.documents + metadata.val_documents,
        "chunks": metadata.num_chunks,
        "chunk_size": metadata.chunk_size,
        "tokenizer": metadata.tokenizer.name,
        "bytes": sum(shard.bytes for shard in metadata.shards),
        "shards": len(metadata.shards),
        "share": 1.0,
        "updated": stamp[0] / 1e9,
    }


def _unfinished(folder: Path) -> dict[str, Any]:
    told = PREPARATIONS.of(folder).summary()
    plan = read_plan(folder)
    return EMPTY | {
        "state": told["state"],
        "tokens": told["tokens"],
        "documents": told["documents"],
        "chunk_size": plan.get("chunk_size"),
        "tokenizer": _tokenizer_name(folder),
        "shards": told["tasks"],
        "share": told["share"],
        "eta_seconds": told["eta_seconds"],
        "mb_per_s": told["text_mb_per_s"],
        "updated": told["updated"],
    }


def read_plan(folder: Path) -> dict[str, Any]:
    """What the dataset was begun with; empty if that cannot be read."""
    try:
        return msgspec.json.decode((folder / WORK / PLAN).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _tokenizer_name(folder: Path) -> str | None:
    """Of the copy that lies there from the beginning on."""
    try:
        told = msgspec.json.decode((folder / "tokenizer" / "headrace-tokenizer.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return os.path.basename(str(told.get("name") or "")) or None
