"""The plan: input split into tasks by file, row group or byte range, never by the number of workers.

Each task makes its own shard, so the bytes of the result do not depend on who does which task, or when.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import xxhash

from headrace.errors import UsageError
from headrace.pipeline.config import LEAST_TASK, PrepareConfig
from headrace.pipeline.hub_record import HubRecord, sources_of
from headrace.sources import Listing, ReadOptions, Source, Span
from headrace.storage import SourceInfo, dtype_for
from headrace.tokenizers import Tokenizer

# 64 tasks keep many workers evenly busy; above 256 MiB too much is lost when a run is stopped.
TASKS_WANTED, LARGEST_TASK = 64, 256 << 20


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    index: int
    spans: list[Span]
    max_tokens: int | None = None

    @property
    def size(self) -> int:
        return sum(span.size for span in self.spans)

    @property
    def label(self) -> str:
        first = self.spans[0]
        part = f" from {first.start:,}" if first.start else ""
        more = f" and {len(self.spans) - 1} more" if len(self.spans) > 1 else ""
        return f"task {self.index} ({first.path}{part}{more})"


class Plan(msgspec.Struct, frozen=True):
    tasks: list[Task]
    sources: list[SourceInfo]
    read: ReadOptions
    identity: dict[str, Any]
    dtype: str
    eos_id: int | None
    bos_id: int | None
    max_tokens: int | None
    listings: list[Listing] = []  # what the hub answered, for whoever goes on with this plan
    whole_bytes: int | None = None  # of the plan that this one is a share of

    @property
    def total_bytes(self) -> int:
        return sum(task.size for task in self.tasks)

    @property
    def digest(self) -> str:
        """Short for the identity, to stand in each result."""
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode(self.identity, order="deterministic"))

    @property
    def hub_record(self) -> HubRecord:
        spans = [span for task in self.tasks for span in task.spans]
        return HubRecord(self.listings, self.sources, self.read, self.identity["task_bytes"], spans)


def make_plan(config: PrepareConfig, source: Source, tokenizer: Tokenizer, record: HubRecord | None = None) -> Plan:
    size = config.task_bytes or min(LARGEST_TASK, max(LEAST_TASK, source.total_bytes // TASKS_WANTED))
    sources = sources_of(source)
    max_tokens = config.max_chunks * config.chunk_size if config.max_chunks is not None else None
    spans = record.spans_of(source, size) if record is not None else None
    tasks = group(spans or source.spans(size), size, together=source.sequential)
    return Plan(
        tasks=[msgspec.structs.replace(task, max_tokens=max_tokens) for task in tasks],
        sources=sources,
        read=source.options,
        identity=_identity(config, source, tokenizer, sources, size),
        dtype=_dtype(config, tokenizer),
        eos_id=_special(tokenizer, "eos") if config.eos else None,
        bos_id=_special(tokenizer, "bos") if config.bos else None,
        max_tokens=max_tokens,
        listings=source.listings,
    )


def group(spans: Sequence[Span], size: int, *, together: bool) -> list[Task]:
    """Neighbouring small spans share a task until it is about `size`; `together` makes one task of all."""
    tasks: list[Task] = []
    held: list[Span] = []
    for span in spans:
        if held and not together and sum(s.size for s in held) + span.size > size:
            tasks.append(Task(len(tasks), held))
            held = []
        held.append(span)
    if held:
        tasks.append(Task(len(tasks), held))
    return tasks


def _identity(
    config: PrepareConfig, source: Source, tokenizer: Tokenizer, sources: list[SourceInfo], size: int
) -> dict[str, Any]:
    """All that decides the bytes of the result, and nothing else."""
    return {
        "sources": msgspec.to_builtins(sources),
        "read": msgspec.to_builtins(source.options),
        "tokenizer": {"kind": tokenizer.kind, "sha256": tokenizer.sha256, **msgspec.to_builtins(tokenizer.special)},
        "chunk_size": config.chunk_size,
        "eos": config.eos,
        "bos": config.bos,
        "dtype": config.dtype,
        "packing": config.packing,
        "val_fraction": config.val_fraction,
        "val_seed": config.val_seed,
        "max_chunks": config.max_chunks,
        "task_bytes": size,
        "sha256": config.sha256,
    }


def _dtype(config: PrepareConfig, tokenizer: Tokenizer) -> str:
    if config.dtype == "uint16" and tokenizer.vocab_size > 1 << 16:
        raise UsageError(
            f"--dtype uint16 holds ids below 65,536, but the vocabulary of {tokenizer.name} has "
            f"{tokenizer.vocab_size:,}. Leave --dtype out, or pass --dtype int32."
        )
    return dtype_for(tokenizer.vocab_size).name if config.dtype == "auto" else config.dtype


def _special(tokenizer: Tokenizer, role: str) -> int:
    found: int | None = getattr(tokenizer.special, role)
    if found is None:
        fix = "Name one with --eos-token TOKEN, or pass --no-eos." if role == "eos" else "Leave --bos out."
        raise UsageError(f"The tokenizer {tokenizer.name} has no {role.upper()} token to mark documents with. {fix}")
    return found
