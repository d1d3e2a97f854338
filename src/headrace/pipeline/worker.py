"""One task: documents in, one shard (and perhaps a val shard) out. Knows nothing of processes or of other tasks."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.documents import DocumentBatch
from headrace.files import disk_full_named
from headrace.pipeline.assemble import documents_within, join_documents, val_documents
from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.plan import Task
from headrace.pipeline.results import Finished, Job, TaskResult
from headrace.sources import read_spans
from headrace.storage import TRAIN, VAL, Shard, ShardWriter
from headrace.tokenizers import Engine, Tokenizer, Unsupported, load_tokenizer, open_engine
from headrace.tokenizers.base import FAST_ENGINES, Ids
from headrace.tokenizers.parity import Mismatch, first_difference, smallest_difference

VERIFY_EVERY = 1_000  # one document in so many goes through the reference too: ~2-6% of the time
VERIFY_AT_MOST = 128 << 10  # a longer document would hold the worker up; --verify full checks it
BATCH_BYTES, LEAST_BATCH, BYTES_PER_TOKEN = 4 << 20, 64 << 10, 4  # of text
REJECTS_KEPT = 10_000  # per task; beyond that they are only counted

Report = Callable[[Counts, Stages], None]


class EngineDiffers(Exception):
    """The fast engine is wrong on a document of this task, or fell over on it."""

    def __init__(self, engine: str, mismatch: Mismatch | None, reason: str) -> None:
        super().__init__(reason)
        self.engine, self.mismatch, self.reason = engine, mismatch, reason


class TaskRunner:
    """Does one task after another with an engine that stays loaded."""

    def __init__(self, job: Job, tokenizer: Tokenizer | None = None) -> None:
        self.job = job
        self._tokenizer = tokenizer or load_tokenizer(job.tokenizer)
        if job.likely_engine is not None:
            with contextlib.suppress(Unsupported):
                open_engine(self._tokenizer, job.likely_engine)

    def run(self, task: Task, engine: str, report: Report) -> Finished:
        return _TaskRun(self.job, task, open_engine(self._tokenizer, engine), self._reference, report).run()

    def _reference(self) -> Engine:
        return open_engine(self._tokenizer, "reference")


class _TaskRun:
    def __init__(self, job: Job, task: Task, engine: Engine, reference: Callable[[], Engine], report: Report) -> None:
        self._job, self._task, self._engine, self._reference, self._report = job, task, engine, reference, report
        self._writers: dict[str, ShardWriter] = {}
        self._counts, self._stages = Counts(), Stages()
        self._work = Path(job.parts)
        # A folder of this attempt alone: on shared storage another machine may still be at the same task, and a
        # process number is no name there.
        self._parts = self._work / f"part-{task.index:05d}-{secrets.token_hex(6)}"
        self._rejects = self._parts / "rejects"
        self._train_tokens = 0

    def run(self) -> Finished:
        try:
            with disk_full_named(self._parts):
                self._parts.mkdir()
            for batch in self._batches():
                if not self._take(batch):
                    break
            return self._publish()
        except BaseException:
            for writer in self._writers.values():
                writer.abort()
            raise
        finally:
            shutil.rmtree(self._parts, ignore_errors=True)

    def _batches(self) -> Iterator[DocumentBatch]:
        size = BATCH_BYTES
        if self._task.max_tokens is not None:  # a task that needs little should not fetch and encode much
            size = min(size, max(LEAST_BATCH, self._task.max_tokens * BYTES_PER_TOKEN))
        batches = read_spans(self._task.spans, self._job.read, batch_bytes=size, batch_documents=self._job.batch_size)
        while True:
            started = time.perf_counter()
            batch = next(batches, None)
            self._stages.read += time.perf_counter() - started
            if batch is None:
                return
            yield batch

    def _take(self, batch: DocumentBatch) -> bool:
        """Encode and write a batch; False when the task has all the tokens it was asked for."""
        started = time.perf_counter()
        rows = self._encode(batch.texts)
        encoded = time.perf_counter()
        self._verify(batch.texts, rows)
        verified = time.perf_counter()
        wanted = self._write(batch, rows)
        self._stages.tokenize += encoded - started
        self._stages.verify += verified - encoded
        self._stages.write += time.perf_counter() - verified
        self._report(self._counts, self._stages)
        return wanted

    def _encode(self, texts: Sequence[bytes]) -> list[Ids]:
        try:
            return self._engine.encode(texts)
        except (MemoryError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a native engine panics with its own BaseException
            if self._engine.name not in FAST_ENGINES:
                raise
            raise EngineDiffers(self._engine.name, None, f"{type(error).__name__}: {error}") from error

    def _verify(self, texts: Sequence[bytes], rows: Sequence[Ids]) -> None:
        chosen = self._documents_to_verify(texts)
        if not chosen:
            return
        picked = [texts[i] for i in chosen]
        at = first_difference([rows[i] for i in chosen], self._reference(), picked)
        self._counts.verified += len(chosen)
        if at is not None:
            small = smallest_difference(self._engine, self._reference(), picked[at])
            raise EngineDiffers(self._engine.name, small, f"it differs from the reference on {small.describe()}")

    def _documents_to_verify(self, texts: Sequence[bytes]) -> list[int]:
        if self._job.verify == "none" or self._engine.name not in FAST_ENGINES:
            return []
        if self._job.verify == "full":
            return list(range(len(texts)))
        first = -(self._counts.documents + self._task.index * 37) % VERIFY_EVERY
        return [i for i in range(first, len(texts), VERIFY_EVERY) if len(texts[i]) <= VERIFY_AT_MOST]

    def _write(self, batch: DocumentBatch, rows: Sequence[Ids]) -> bool:
        job, counts = self._job, self._counts
        tokens, lengths = join_documents(rows, np.dtype(job.dtype), job.eos_id, job.bos_id)
        val = val_documents(batch.texts, job.val_fraction, job.val_seed)
        kept, wanted, cut_bytes = len(lengths), True, 0
        if self._task.max_tokens is not None and kept:
            left = self._task.max_tokens - self._train_tokens
            kept = documents_within(lengths, val, left)
            lengths, val = lengths[:kept], val[:kept]
            over = max(0, int(lengths[~val].sum()) - left)
            wanted = int(lengths[~val].sum()) < left
            cut_bytes = len(batch.texts[kept - 1]) * over // int(lengths[-1])  # in proportion: tokens have no bytes
            lengths[-1] -= over  # the last document is cut where the last chunk ends
            tokens = tokens[: lengths.sum()]
        self._append(TRAIN, tokens, lengths, ~val)
        self._append(VAL, tokens, lengths, val)
        self._keep_rejects(batch)
        counts.add(
            Counts(
                documents=kept,
                rejects=sum(reject.counts for reject in batch.rejects),
                input_bytes=batch.input_bytes,
                text_bytes=sum(map(len, batch.texts[:kept])) - cut_bytes,
                tokens=len(tokens),
            )
        )
        return wanted

    def _append(self, split: str, tokens: NDArray[Any], lengths: NDArray[np.int32], chosen: NDArray[np.bool_]) -> None:
        if not chosen.any():
            return
        if not chosen.all():
            tokens, lengths = tokens[np.repeat(chosen, lengths)], lengths[chosen]
        if split not in self._writers:
            name = f"{'shard' if split == TRAIN else split}-{self._task.index:05d}"
            folder, dtype = Path(self._job.folder), np.dtype(self._job.dtype)
            self._writers[split] = ShardWriter(folder, self._parts, name, dtype, split=split, sha256=self._job.sha256)
        self._writers[split].append(tokens, lengths)
        self._train_tokens += len(tokens) if split == TRAIN else 0

    def _keep_rejects(self, batch: DocumentBatch) -> None:
        room = REJECTS_KEPT - self._counts.rejects
        if not batch.rejects or room <= 0:
            return
        lines = [msgspec.json.encode(reject._asdict()) + b"\n" for reject in batch.rejects[:room]]
        with disk_full_named(self._rejects), open(self._rejects, "ab") as file:
            file.write(b"".join(lines))

    def _publish(self) -> Finished:
        """Shards first, the result last: a result on disk means that its shards are whole."""
        started = time.perf_counter()
        shards: list[Shard] = [self._writers[split].close() for split in (TRAIN, VAL) if split in self._writers]
        result = TaskResult(
            index=self._task.index,
            shards=shards,
            counts=self._counts,
            engine=self._engine.name,
            max_tokens=self._task.max_tokens,
            plan=self._job.plan,
        )
        final = self._work / f"task-{self._task.index:05d}.json"
        part = self._parts / final.name
        with disk_full_named(final):
            if self._rejects.exists():
                os.replace(self._rejects, final.with_suffix(".rejects.jsonl"))
            part.write_bytes(msgspec.json.encode(result))
            os.replace(part, final)
        self._stages.write += time.perf_counter() - started
        return Finished(result, self._stages)
