"""The end of a run: rejects counted, packing planned, the manifest written last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from headrace.errors import DataRejected
from headrace.files import write_atomically
from headrace.packing import best_fit, save_plan
from headrace.pipeline.config import PrepareConfig
from headrace.pipeline.counts import Counts
from headrace.pipeline.plan import Plan
from headrace.pipeline.results import TaskResult
from headrace.pipeline.workfolder import WorkFolder
from headrace.storage import TRAIN, VAL, Metadata, Shard, TokenizerInfo, TokenStore, split_lengths, write_metadata
from headrace.tokenizers import Tokenizer
from headrace.version import __version__

HOPELESS = 4  # a run is stopped early when it has this many times the rejects that its whole input may have


def finish(
    config: PrepareConfig, plan: Plan, tokenizer: Tokenizer, results: Sequence[TaskResult], work: WorkFolder
) -> TokenStore:
    counts = total_counts(results)
    check_rejects(config, work, counts)
    _check_not_empty(counts, work)
    rejects = b"".join(path.read_bytes() for path in work.reject_files())
    if rejects:
        write_atomically(config.folder / "rejects.jsonl", rejects)
    metadata = describe(config, plan, tokenizer, results, counts)
    if config.packing == "best-fit":
        _plan_packing(config, metadata)
    write_metadata(config.folder, metadata)
    work.clear()
    return TokenStore(config.folder)


def total_counts(results: Sequence[TaskResult]) -> Counts:
    counts = Counts()
    for result in results:
        counts.add(result.counts)
    return counts


def check_rejects(config: PrepareConfig, work: WorkFolder, counts: Counts, done: float = 1.0) -> None:
    """Stop when too much is refused; before the end only when the rest cannot mend it."""
    records = counts.documents + counts.rejects
    allowed = config.max_reject_rate * records / max(done, 1e-9)
    if counts.rejects <= (allowed if done >= 1 else HOPELESS * allowed + 100):
        return
    where = _first_rejects(work)
    raise DataRejected(
        f"{counts.rejects:,} of {records:,} records ({counts.rejects / records:.2%}) were rejected; at most "
        f"{config.max_reject_rate:.2%} may be. The first:\n{where}\n"
        f"Mend them, or run the same command with --max-reject-rate {_rate_to_pass(counts.rejects / records)} to leave "
        f"them out: all finished work is kept."
    )


def _check_not_empty(counts: Counts, work: WorkFolder) -> None:
    if not counts.documents:
        raise DataRejected(
            f"There is not one document in the input.\n{_first_rejects(work, counted_only=False)}\n"
            f"Name files with text in them, and look at --text-field."
        )


def _rate_to_pass(rate: float) -> str:
    return f"{min(1.0, rate * 1.05 + 0.0001):.4f}"


def _first_rejects(work: WorkFolder, count: int = 5, *, counted_only: bool = True) -> str:
    lines: list[str] = []
    for path in work.reject_files():
        for line in path.read_bytes().splitlines():
            reject = msgspec.json.decode(line)
            if reject["counts"] or not counted_only:
                lines.append(f"  {reject['file']}, {reject['where']}: {reject['reason']}")
            if len(lines) >= count:
                return "\n".join(lines)
    return "\n".join(lines)


def describe(
    config: PrepareConfig, plan: Plan, tokenizer: Tokenizer, results: Sequence[TaskResult], counts: Counts
) -> Metadata:
    shards = [shard for result in results for shard in result.shards]
    special = tokenizer.special
    tokens = _sum(shards, TRAIN, "tokens")
    return Metadata(
        headrace_version=__version__,
        chunk_size=config.chunk_size,
        num_chunks=tokens // config.chunk_size,
        total_tokens=tokens,
        documents=_sum(shards, TRAIN, "documents"),
        vocab_size=tokenizer.vocab_size,
        dtype=plan.dtype,
        text_bytes=counts.text_bytes,
        val_tokens=_sum(shards, VAL, "tokens"),
        val_documents=_sum(shards, VAL, "documents"),
        rejects=counts.rejects,
        packing=config.packing,
        tokenizer=TokenizerInfo(
            kind=tokenizer.kind,
            name=_portable_name(tokenizer),
            sha256=tokenizer.sha256,
            vocab_size=tokenizer.vocab_size,
            eos_token_id=special.eos,
            bos_token_id=special.bos,
            pad_token_id=special.pad,
        ),
        config=plan.identity,
        sources=plan.sources,
        shards=sorted(shards, key=lambda shard: (shard.split != TRAIN, shard.name)),
        eos_token_id=special.eos,
        bos_token_id=special.bos,
        pad_token_id=special.pad,
    )


def _portable_name(tokenizer: Tokenizer) -> str:
    """A file's name without its folder: the dataset carries the file itself."""
    return Path(tokenizer.name).name if tokenizer.files and "/" in tokenizer.name else tokenizer.name


def _sum(shards: Sequence[Shard], split: str, field: str) -> int:
    return sum(getattr(shard, field) for shard in shards if shard.split == split)


def _plan_packing(config: PrepareConfig, metadata: Metadata) -> None:
    for split in (TRAIN, VAL):
        lengths = split_lengths(config.folder, metadata, split)
        if len(lengths):
            save_plan(config.folder, best_fit(lengths, config.chunk_size), split)
