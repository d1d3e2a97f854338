"""A small dataset written by hand, for tests that need no pipeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headrace.storage import Metadata, Shard, ShardWriter, TokenizerInfo, write_metadata

EOS = 256


def write_dataset(
    folder: Path, shards: list[list[list[int]]], *, chunk_size: int = 8, dtype: str = "uint16", vocab_size: int = 259
) -> list[list[int]]:
    """Write documents shard by shard; give them back as one list."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [write_shard(folder, f"shard-{i:05d}", documents, dtype) for i, documents in enumerate(shards)]
    tokens = sum(shard.tokens for shard in written)
    write_metadata(
        folder,
        Metadata(
            headrace_version="test",
            chunk_size=chunk_size,
            num_chunks=tokens // chunk_size,
            total_tokens=tokens,
            documents=sum(shard.documents for shard in written),
            vocab_size=vocab_size,
            eos_token_id=EOS,
            bos_token_id=None,
            pad_token_id=None,
            dtype=dtype,
            text_bytes=tokens,
            val_tokens=0,
            val_documents=0,
            rejects=0,
            packing="concat",
            tokenizer=TokenizerInfo("bytes", "bytes", "0" * 64, vocab_size, EOS, None, None),
            config={"eos": True, "bos": False},
            sources=[],
            shards=written,
        ),
    )
    return [document for documents in shards for document in documents]


def write_shard(folder: Path, name: str, documents: list[list[int]], dtype: str) -> Shard:
    writer = ShardWriter(folder, folder, name, np.dtype(dtype), sha256=True)
    for document in documents:
        writer.append(np.array(document, dtype), np.array([len(document)], np.int32))
    return writer.close()


def random_documents(seed: int, count: int, longest: int = 40, vocab_size: int = 256) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [[*rng.integers(0, vocab_size, rng.integers(0, longest)).tolist(), EOS] for _ in range(count)]
