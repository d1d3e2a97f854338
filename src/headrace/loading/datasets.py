"""The datasets of a mixture, opened: which chunks a run may draw from, and what makes them these very data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import xxhash

from headrace.errors import UsageError
from headrace.storage import TRAIN, VAL, TokenStore, read_metadata


class ChunkRange(msgspec.Struct, frozen=True):
    """A dataset and the range of its chunks that is drawn from. A chunk has one token more than the sequence."""

    name: str
    store: TokenStore
    first: int
    count: int


def open_datasets(
    names: Sequence[str], opened: Sequence[ChunkRange] = (), *, seq_len: int, split: str, holdout: float
) -> list[ChunkRange]:
    """The datasets of a mixture, those opened before first; all must have been made with the same tokenizer."""
    ranges = [*opened, *(_open(name, seq_len, split, holdout) for name in names[len(opened) :])]
    _check_tokenizers(ranges)
    return ranges


def fingerprint(dataset: ChunkRange) -> str:
    """Changes when a token, a shard's place or the range changes; not when the folder is moved."""
    shards = [(shard.tokens, shard.documents, shard.xxh3_128) for shard in dataset.store.shards]
    facts = (dataset.store.metadata.tokenizer.sha256, dataset.first, dataset.count, shards)
    return xxhash.xxh3_128(msgspec.json.encode(facts)).hexdigest()


def _open(name: str, seq_len: int, split: str, holdout: float) -> ChunkRange:
    has_val = any(shard.documents for shard in read_metadata(Path(name)).of_split(VAL))
    if split == TRAIN or has_val:
        store = TokenStore(name, split=split)
        chunks = (store.total_tokens - 1) // seq_len
        held = 0 if has_val else _held_out(chunks, holdout)
        return _checked(ChunkRange(name, store, 0, chunks - held), seq_len)
    store = TokenStore(name)
    chunks = (store.total_tokens - 1) // seq_len
    held = _held_out(chunks, holdout)
    if not held:
        raise UsageError(
            f"{name} has no validation documents, and holdout is {holdout}. Prepare it with --val-fraction, or hold "
            f"chunks out: Loader(..., split='val', holdout=0.01) beside Loader(..., holdout=0.01) for training."
        )
    return _checked(ChunkRange(name, store, chunks - held, held), seq_len)


def _held_out(chunks: int, share: float) -> int:
    """The last chunks are set aside; at least one where a share is asked for."""
    return min(chunks, max(1, round(chunks * share))) if share else 0


def _checked(dataset: ChunkRange, seq_len: int) -> ChunkRange:
    if dataset.count < 1:
        raise UsageError(
            f"{dataset.name} ({dataset.store.split}) holds {dataset.store.total_tokens:,} tokens: too few for a "
            f"sequence of {seq_len:,} and its next token. Use a smaller seq_len, or prepare more text."
        )
    return dataset


def _check_tokenizers(ranges: Sequence[ChunkRange]) -> None:
    first = ranges[0]
    for other in ranges[1:]:
        mine, theirs = first.store.metadata.tokenizer, other.store.metadata.tokenizer
        if mine.sha256 != theirs.sha256:
            raise UsageError(
                f"{first.name} was tokenized with {mine.name} ({mine.vocab_size:,} ids) and {other.name} with "
                f"{theirs.name} ({theirs.vocab_size:,} ids): their ids mean different things. Prepare one of them "
                f"again with the other's tokenizer: headrace prepare ... --tokenizer {first.name}"
            )
