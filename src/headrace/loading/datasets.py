"""The datasets of a mixture, opened: which chunks a run may draw from, and what makes them these very data."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import xxhash

from headrace.errors import StoreError, UsageError
from headrace.packing import PackPlan, best_fit, load_plan
from headrace.storage import TRAIN, VAL, TokenStore

CONCAT, BEST_FIT = PACKINGS = ("concat", "best-fit")


class ChunkRange(msgspec.Struct, frozen=True):
    """A dataset and the range of its chunks that is drawn from."""

    name: str
    store: TokenStore
    first: int
    count: int
    plan: PackPlan | None = None


class Selection(msgspec.Struct, frozen=True):
    """What of a dataset is read, and how it is cut."""

    seq_len: int
    split: str = TRAIN
    holdout: float = 0.0
    packing: str = CONCAT
    max_chunks: int | None = None  # of each dataset; the first ones


def open_datasets(names: Sequence[str], selection: Selection, opened: Sequence[ChunkRange] = ()) -> list[ChunkRange]:
    """The datasets of a mixture, those opened before first; all must have been made with the same tokenizer."""
    ranges = [*opened, *(_open(name, selection) for name in names[len(opened) :])]
    _check_tokenizers(ranges)
    return ranges


def fingerprint(dataset: ChunkRange) -> str:
    """Changes when a token, a shard's place, the packing or the range changes; not when the folder is moved."""
    shards = [(shard.tokens, shard.documents, shard.xxh3_128) for shard in dataset.store.shards]
    facts: tuple[object, ...] = (dataset.store.metadata.tokenizer.sha256, dataset.first, dataset.count, shards)
    if dataset.plan is not None:
        facts = (*facts, BEST_FIT, dataset.plan.chunk_size)
    return xxhash.xxh3_128(msgspec.json.encode(facts)).hexdigest()


def _open(name: str, selection: Selection) -> ChunkRange:
    store = TokenStore(name)
    has_val = any(shard.documents for shard in store.metadata.of_split(VAL))
    if has_val and selection.split != TRAIN:
        store = TokenStore(name, split=selection.split)
    plan = _plan(store, selection.seq_len) if selection.packing == BEST_FIT else None
    chunks = plan.num_chunks if plan else (store.total_tokens - 1) // selection.seq_len
    held = 0 if has_val else _held_out(chunks, selection.holdout)
    if selection.split == TRAIN or has_val:
        count = min(chunks - held, selection.max_chunks or chunks)
        return _checked(ChunkRange(name, store, 0, count, plan), selection.seq_len)
    if not held:
        raise UsageError(
            f"{name} has no validation documents, and holdout is {selection.holdout}. Prepare it with --val-fraction, "
            f"or hold chunks out: Loader(..., split='val', holdout=0.01) beside Loader(..., holdout=0.01) for training."
        )
    return _checked(ChunkRange(name, store, chunks - held, held, plan), selection.seq_len)


def _plan(store: TokenStore, seq_len: int) -> PackPlan:
    """The plan that was made when the dataset was prepared, or one made now: 0.7 s for a million documents."""
    try:
        return load_plan(store.path, seq_len, store.split)
    except StoreError:
        return best_fit(store.document_lengths(), seq_len)


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
