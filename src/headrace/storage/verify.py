"""Find any flipped bit, cut file, wrong count, missing shard or id that is none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import HeadraceError, StoreError
from headrace.storage.index import encode_index, read_lengths
from headrace.storage.manifest import Metadata, Shard, read_metadata

BLOCK = 8 << 20


class VerifyReport(msgspec.Struct, frozen=True):
    path: str
    shards: int
    tokens: int
    documents: int
    bytes: int
    problems: list[str]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(folder: Path, on_shard: Callable[[Shard], None] | None = None) -> VerifyReport:
    """Check every byte of every shard against the manifest."""
    metadata = read_metadata(folder)
    problems = _check_counts(metadata)
    for shard in metadata.shards:
        problems += _check_shard(folder, metadata, shard)
        if on_shard is not None:
            on_shard(shard)
    problems += _strangers(folder, metadata)
    problems += _check_tokenizer(folder, metadata)
    shards = metadata.shards
    return VerifyReport(
        path=str(folder),
        shards=len(shards),
        tokens=sum(shard.tokens for shard in shards),
        documents=sum(shard.documents for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        problems=problems,
    )


def checksum(path: Path) -> str:
    """The xxh3_128 of a file."""
    digest = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _check_counts(metadata: Metadata) -> list[str]:
    """The totals of the manifest against its own list of shards."""
    train, val = metadata.of_split("train"), metadata.of_split("val")
    expected = {
        "total_tokens": sum(shard.tokens for shard in train),
        "documents": sum(shard.documents for shard in train),
        "val_tokens": sum(shard.tokens for shard in val),
        "val_documents": sum(shard.documents for shard in val),
        "num_chunks": sum(shard.tokens for shard in train) // metadata.chunk_size,
        "vocab_size": metadata.tokenizer.vocab_size,
    }
    return [
        f"metadata.json says {name} {getattr(metadata, name):,}, its shards say {value:,}"
        for name, value in expected.items()
        if getattr(metadata, name) != value
    ]


def _check_shard(folder: Path, metadata: Metadata, shard: Shard) -> list[str]:
    path = folder / f"{shard.name}.bin"
    dtype = np.dtype(metadata.dtype)
    if not path.is_file():
        return [f"{path.name} is missing"]
    size = path.stat().st_size
    if size != shard.bytes or size != shard.tokens * dtype.itemsize:
        return [f"{path.name} has {size:,} bytes, the manifest says {shard.bytes:,}"]
    return _check_tokens(path, metadata, shard, dtype) + _check_index(folder, shard, dtype)


def _check_tokens(path: Path, metadata: Metadata, shard: Shard, dtype: np.dtype[Any]) -> list[str]:
    xxh3, sha256, highest, lowest = xxhash.xxh3_128(), hashlib.sha256(), 0, 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            xxh3.update(block)
            if shard.sha256 is not None:
                sha256.update(block)
            ids: NDArray[Any] = np.frombuffer(block, dtype)
            highest, lowest = max(highest, int(ids.max())), min(lowest, int(ids.min()))
    problems = []
    if xxh3.hexdigest() != shard.xxh3_128 or shard.sha256 not in (None, sha256.hexdigest()):
        problems.append(f"{path.name}: the tokens are not those that were written (checksum differs)")
    if highest >= metadata.vocab_size or lowest < 0:
        wrong = highest if highest >= metadata.vocab_size else lowest
        problems.append(f"{path.name}: holds id {wrong:,}, but the vocabulary has {metadata.vocab_size:,}")
    return problems


def _check_index(folder: Path, shard: Shard, dtype: np.dtype[Any]) -> list[str]:
    path = folder / f"{shard.name}.idx"
    try:
        lengths = np.array(read_lengths(path, shard.documents, dtype))
    except StoreError as error:
        return [str(error)]
    problems = []
    if int(lengths.sum(dtype=np.int64)) != shard.tokens:
        total = int(lengths.sum(dtype=np.int64))
        problems.append(f"{path.name}: its documents add up to {total:,} tokens, not {shard.tokens:,}")
    data = path.read_bytes()
    if xxhash.xxh3_128(data).hexdigest() != shard.index_xxh3_128 or data != encode_index(lengths, dtype):
        problems.append(f"{path.name}: the index is not the one that was written (checksum differs)")
    return problems


def _check_tokenizer(folder: Path, metadata: Metadata) -> list[str]:
    from headrace.tokenizers import load_tokenizer

    try:
        tokenizer = load_tokenizer(folder / "tokenizer")
    except (HeadraceError, OSError, msgspec.DecodeError, KeyError) as error:
        return [f"tokenizer/: {error}"]
    if tokenizer.sha256 != metadata.tokenizer.sha256:
        return ["tokenizer/: the files are not those that were written (checksum differs)"]
    if tokenizer.special.eos != metadata.tokenizer.eos_token_id:
        return [f"tokenizer/: its EOS is {tokenizer.special.eos}, the manifest says {metadata.tokenizer.eos_token_id}"]
    return []


def _strangers(folder: Path, metadata: Metadata) -> list[str]:
    known = {shard.name for shard in metadata.shards}
    found = {path.stem for path in folder.glob("*.bin")} | {path.stem for path in folder.glob("*.idx")}
    return [f"{name}.bin/.idx is not in the manifest" for name in sorted(found - known)]
