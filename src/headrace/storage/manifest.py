"""metadata.json: what a dataset is. It is written last, so a folder that has one is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import StoreError
from headrace.files import write_atomically

FORMAT_VERSION = 1
FILE = "metadata.json"
TRAIN, VAL = "train", "val"


class Shard(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    tokens: int
    documents: int
    bytes: int
    xxh3_128: str
    index_xxh3_128: str
    split: str = TRAIN
    sha256: str | None = None


class TokenizerInfo(msgspec.Struct, frozen=True):
    kind: str
    name: str
    sha256: str
    vocab_size: int
    eos_token_id: int | None
    bos_token_id: int | None
    pad_token_id: int | None


class SourceInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    size: int
    revision: str | None = None


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The first block repeats what training scripts look for under these very names."""

    format: str = "headrace"
    format_version: int = FORMAT_VERSION
    headrace_version: str
    chunk_size: int
    num_chunks: int
    total_tokens: int
    documents: int
    vocab_size: int
    eos_token_id: int | None
    bos_token_id: int | None
    pad_token_id: int | None
    dtype: str
    text_bytes: int
    val_tokens: int
    val_documents: int
    rejects: int
    packing: str
    tokenizer: TokenizerInfo
    config: dict[str, Any]  # what decides the bytes; the same command again is compared with it
    sources: list[SourceInfo]
    shards: list[Shard]

    def of_split(self, split: str) -> list[Shard]:
        return [shard for shard in self.shards if shard.split == split]


def write_metadata(folder: Path, metadata: Metadata) -> None:
    write_atomically(folder / FILE, msgspec.json.format(msgspec.json.encode(metadata), indent=2) + b"\n")


def read_metadata(folder: Path) -> Metadata:
    path = folder / FILE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(_why_missing(folder)) from error
    try:
        metadata = msgspec.json.decode(data, type=Metadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is not a Headrace manifest: {error}. Prepare the dataset again.") from error
    if metadata.format_version > FORMAT_VERSION:
        raise StoreError(
            f"{path} has format version {metadata.format_version}; this Headrace reads up to {FORMAT_VERSION}. "
            f"Run: pip install --upgrade headrace"
        )
    return metadata


def _why_missing(folder: Path) -> str:
    if (folder / ".headrace").is_dir():
        return f"{folder} is not finished: it has no {FILE} yet. Run the same 'headrace prepare' again to go on."
    if not folder.exists():
        return f"There is no dataset at {folder}. Make one with: headrace prepare SOURCE --out {folder}"
    return f"{folder} is not a Headrace dataset: it has no {FILE}. Make one with: headrace prepare SOURCE --out DIR"
