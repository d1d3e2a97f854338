"""What flows between a run and its workers."""

from __future__ import annotations

import msgspec

from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.plan import Task
from headrace.sources import ReadOptions
from headrace.storage import TRAIN, Shard
from headrace.tokenizers.parity import Mismatch


class Job(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is the same for every task of a run."""

    folder: str
    parts: str
    tokenizer: str
    likely_engine: str | None  # loaded ahead; each task says which engine it is done with
    read: ReadOptions
    dtype: str
    eos_id: int | None
    bos_id: int | None
    val_fraction: float
    val_seed: int
    verify: str
    batch_size: int | None
    sha256: bool
    plan: str = ""  # the digest of what decides the bytes


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """Kept on disk beside the shards until the manifest is written."""

    index: int
    shards: list[Shard]
    counts: Counts
    engine: str
    max_tokens: int | None
    plan: str = ""  # the run it was made for; a result of another one is not believed

    @property
    def train_tokens(self) -> int:
        return sum(shard.tokens for shard in self.shards if shard.split == TRAIN)


class RunTask(msgspec.Struct, frozen=True, tag=True):
    task: Task
    engine: str


class Advanced(msgspec.Struct, frozen=True, tag=True):
    """Counts and stage times since the task began."""

    index: int
    counts: Counts
    stages: Stages


class Finished(msgspec.Struct, frozen=True, tag=True):
    result: TaskResult
    stages: Stages


class Differs(msgspec.Struct, frozen=True, tag=True):
    """The fast engine and the reference disagree: nothing that engine made in this run is kept."""

    index: int
    engine: str
    mismatch: Mismatch | None
    reason: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    index: int
    error: str  # the class in headrace.errors, or another exception's name
    message: str
    trace: str


Message = Advanced | Finished | Differs | Failed
Order = Job | RunTask
