"""Datasets for bench/opening.py, with the real structs and index but without the work of tokenizing."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import msgspec
import numpy as np
import xxhash

from headrace.storage import Metadata, Shard, ShardWriter, TokenizerInfo, write_metadata
from headrace.storage.index import encode_index

DTYPE = np.dtype(np.uint16)
VOCABULARY, EOS = 32_768, 0
LONGEST = (1 << 31) - 1  # of a document: its length is an int32


def dense(folder: Path, tokens: int, shards: int, document: int = 1000) -> Path:
    """Random tokens in documents of one length."""
    if not (folder / "metadata.json").is_file():
        fresh(folder)
        rng = np.random.default_rng(0)
        share = tokens // shards // document * document
        write(folder, [dense_shard(folder, f"shard-{i:05d}", rng, share, document) for i in range(shards)])
    return folder


def dense_shard(folder: Path, name: str, rng: np.random.Generator, tokens: int, document: int) -> Shard:
    writer = ShardWriter(folder, folder, name, DTYPE)
    lengths = np.full(tokens // document, document, np.int32)
    writer.append(rng.integers(1, VOCABULARY, tokens, dtype=DTYPE), lengths)
    return writer.close()


def sparse(folder: Path, tokens: int, shards: int) -> Path:
    """Files of the full size that take no room: every token reads as 0. Their checksums are not real."""
    if not (folder / "metadata.json").is_file():
        fresh(folder)
        write(folder, [sparse_shard(folder, f"shard-{i:05d}", tokens // shards) for i in range(shards)])
    return folder


def sparse_shard(folder: Path, name: str, tokens: int) -> Shard:
    with open(folder / f"{name}.bin", "wb") as file:
        os.truncate(file.fileno(), tokens * DTYPE.itemsize)
    parts = -(-tokens // LONGEST)
    lengths = np.array([len(part) for part in split_range(tokens, parts)], np.int32)
    index = encode_index(lengths, DTYPE)
    (folder / f"{name}.idx").write_bytes(index)
    sum_of_index = xxhash.xxh3_128(index).hexdigest()
    return Shard(name, tokens, parts, tokens * DTYPE.itemsize, "0" * 32, sum_of_index)


def listed(folder: Path, shards: int, tokens: int) -> Path:
    """A manifest of so many shards, of which only the one in the middle is there; for opening, not for reading."""
    if not (folder / "metadata.json").is_file():
        fresh(folder)
        middle = sparse_shard(folder, f"shard-{shards // 2:05d}", tokens)
        write(folder, [msgspec.structs.replace(middle, name=f"shard-{i:05d}") for i in range(shards)])
    return folder


def split_range(total: int, parts: int) -> list[range]:
    bounds = [total * i // parts for i in range(parts + 1)]
    return [range(a, b) for a, b in itertools.pairwise(bounds)]


def fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def write(folder: Path, shards: list[Shard], chunk_size: int = 2048) -> None:
    tokens, documents = sum(shard.tokens for shard in shards), sum(shard.documents for shard in shards)
    write_metadata(
        folder,
        Metadata(
            headrace_version="bench",
            chunk_size=chunk_size,
            num_chunks=tokens // chunk_size,
            total_tokens=tokens,
            documents=documents,
            vocab_size=VOCABULARY,
            eos_token_id=EOS,
            bos_token_id=None,
            pad_token_id=None,
            dtype=DTYPE.name,
            text_bytes=tokens,
            val_tokens=0,
            val_documents=0,
            rejects=0,
            packing="concat",
            tokenizer=TokenizerInfo("bytes", "bytes", "0" * 64, VOCABULARY, EOS, None, None),
            config={"eos": True, "bos": False},
            sources=[],
            shards=shards,
        ),
    )
