"""PrepareConfig: everything 'headrace prepare' can be told."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.errors import UsageError

ENGINES = ("auto", "reference", "gigatoken", "fastokens")
PACKINGS = ("concat", "best-fit")
VERIFY = ("sample", "full", "none")
DTYPES = ("auto", "uint16", "int32")
PLACES = ("local", "ray")
LEAST_TASK = 8 << 20  # input bytes; below, the overhead of a task shows, and a whole run needs no worker processes


@dataclass(frozen=True, kw_only=True)
class PrepareConfig:
    source: str | Path | Sequence[str | Path]
    out: str | Path
    tokenizer: str | Path = "headrace-32k"
    chunk_size: int = 2048
    workers: int | None = None  # None: one per core this process may use
    text_field: str | None = None
    split: str | None = None
    revision: str | None = None
    separator: str | None = None
    val_fraction: float = 0.0
    val_seed: int = 0
    max_chunks: int | None = None
    max_reject_rate: float = 0.001
    keep_damaged: bool = False
    eos: bool = True
    bos: bool = False
    eos_token: str | None = None
    dtype: str = "auto"
    packing: str = "concat"
    engine: str = "auto"
    verify: str = "sample"
    batch_size: int | None = None  # documents per call of the tokenizer; None: by bytes
    task_bytes: int | None = None  # None: by the size of the input, see plan.py
    sha256: bool = False
    force: bool = False
    task_index: int | None = None  # which share of the plan's tasks this is, see shares.py
    task_count: int | None = None  # in how many shares the plan is done
    finish: bool = False
    on: str = "local"
    ray_address: str = "auto"
    cpus_per_task: int = 1
    memory_per_task: float | None = None  # bytes

    def __post_init__(self) -> None:
        _at_least("--chunk-size", self.chunk_size, 1, "a chunk holds at least 1 token; 2048 is usual")
        _at_least("--workers", self.workers, 1, "leave it out for one per core")
        _at_least("--max-chunks", self.max_chunks, 1, "leave it out for all")
        _at_least("--batch-size", self.batch_size, 1, "leave it out to batch by bytes")
        _at_least("--task-bytes", self.task_bytes, 1, "leave it out to choose by the input's size")
        _share("--val-fraction", self.val_fraction, below_one=True)
        _share("--max-reject-rate", self.max_reject_rate, below_one=False)
        _one_of("--engine", self.engine, ENGINES)
        _one_of("--packing", self.packing, PACKINGS)
        _one_of("--verify", self.verify, VERIFY)
        _one_of("--dtype", self.dtype, DTYPES)
        _one_of("--on", self.on, PLACES)
        _at_least("--cpus-per-task", self.cpus_per_task, 1, "a task computes on one core")
        self._check_share()
        self._check_place()

    def _check_share(self) -> None:
        index, count = self.task_index, self.task_count
        if (index is None) != (count is None):
            raise UsageError("--task-index and --task-count belong together: the 4th of 64 shares is --task-index 3.")
        if index is not None and count is not None and not 0 <= index < count:
            raise UsageError(f"--task-index {index}: with --task-count {count} it must be from 0 to {count - 1}.")
        if self.finish and index is not None:
            raise UsageError("--finish comes after all shares: leave --task-index and --task-count out.")
        if self.force and (self.finish or index is not None):
            raise UsageError(
                "--force would throw away what other shares have made. Delete the folder once, before the first share."
            )

    def _check_place(self) -> None:
        asked = (self.ray_address, self.cpus_per_task, self.memory_per_task) != ("auto", 1, None)
        if self.on != "ray" and asked:
            raise UsageError("--ray-address, --cpus-per-task and --memory-per-task are for a cluster: pass --on ray.")
        if self.on == "ray" and (self.finish or self.task_index is not None):
            raise UsageError("--on ray does the whole plan: leave --task-index, --task-count and --finish out.")

    @property
    def folder(self) -> Path:
        return Path(self.out).expanduser().absolute()

    @property
    def worker_count(self) -> int:
        return self.workers or len(usable_cores())


def usable_cores() -> Any:
    """The cores this process may run on, which a container or taskset may have narrowed."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _at_least(flag: str, value: int | None, least: int, hint: str) -> None:
    if value is not None and value < least:
        raise UsageError(f"{flag} {value}: it must be at least {least} ({hint}).")


def _share(flag: str, value: float, *, below_one: bool) -> None:
    if not 0 <= value <= 1 or (below_one and value == 1):
        limit = "less than 1" if below_one else "at most 1"
        raise UsageError(f"{flag} {value}: it must be at least 0 and {limit}; 0.01 means one document in a hundred.")


def _one_of(flag: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UsageError(f"{flag} {value!r}: it must be one of {', '.join(choices)}.")
