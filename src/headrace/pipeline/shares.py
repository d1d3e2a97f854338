"""Shares: one plan done by many jobs that know nothing of each other, as in a Slurm array or a Kubernetes Job.

They meet only on the storage they share. Each plans for itself and does every task that falls to it; whoever is last
calls for the finish, which finds all results there and writes the manifest.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import HeadraceError, UsageError
from headrace.files import write_atomically
from headrace.pipeline.command import command_of
from headrace.pipeline.config import PrepareConfig
from headrace.pipeline.finish import total_counts
from headrace.pipeline.holding import hold_share
from headrace.pipeline.hub_record import FILE as HUB_RECORD
from headrace.pipeline.hub_record import HubRecord, write_record
from headrace.pipeline.launch import Waiting
from headrace.pipeline.plan import Plan, Task
from headrace.pipeline.progress import Observer
from headrace.pipeline.results import TaskResult
from headrace.pipeline.run import Run, already_there, plan_for, wanted_tasks
from headrace.pipeline.workfolder import PARTS, WorkFolder, read_engines, remove
from headrace.storage import TokenStore
from headrace.tokenizers import FAST_ENGINES

INDEX_NAMES = ("SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX")
COUNT_NAME = "SLURM_ARRAY_TASK_COUNT"
COUNTS = "shares-"  # a file for each number of shares that was used here
COMMANDS = 5  # in a message


class ShareDone(msgspec.Struct, frozen=True):
    path: str
    task_index: int
    task_count: int
    tasks: int
    tokens: int
    documents: int
    rejects: int
    tasks_left: int  # of all shares
    finish: str  # the command for when none is left


def from_environment(
    index: int | None, count: int | None, environment: Mapping[str, str] = os.environ
) -> tuple[int | None, int | None]:
    """Whichever of the two was not given, by what Slurm or Kubernetes says; neither without the other being given."""
    if index is None and count is not None:
        index = _number(environment, INDEX_NAMES)
    elif count is None and index is not None:
        count = _number(environment, (COUNT_NAME,))
    return index, count


def _number(environment: Mapping[str, str], names: Sequence[str]) -> int | None:
    for name in names:
        if value := environment.get(name):
            if not (value.isascii() and value.isdecimal()):
                raise UsageError(f"{name}={value!r} is no number. Pass --task-index and --task-count instead.")
            return int(value)
    return None


def share_of(tasks: Sequence[Task], index: int, count: int) -> list[Task]:
    """Tasks dealt in turn, the largest first: the shares' input differs by no more than one task."""
    return sorted(_dealt(tasks)[index::count], key=lambda task: task.index)


def _dealt(tasks: Sequence[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: (-task.size, task.index))


class ShareFolder(WorkFolder):
    """The same folder, as one of several sees it who write into it at once.

    Every file here is either this share's own, or is renamed into place whole and is the same whoever writes it.
    """

    def __init__(self, folder: Path, index: int, count: int, tokenizer: Path) -> None:
        super().__init__(folder)
        self._index, self._count = index, count
        self.events = self.path / f"events-{index:05d}.jsonl"
        self.tokenizer = tokenizer  # on this machine: the one beside the shards is written at the finish
        self._trusted = self.path / f"trusted-{index:05d}.json"
        self._boot = self.path / f"boot-{index:05d}"
        self._synced_name = f"synced-{index:05d}.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        with hold_share(self.path, self._index):
            yield

    def begin_share(self, plan: Plan) -> None:
        """Write the plan's identity, or check that it is the one of the other shares.

        What killed workers left half-written stays until the finish: with another number of shares beside this one,
        it might be somebody's who still lives.
        """
        (self.path / f"{COUNTS}{self._count}").touch()
        if not self._plan.is_file():
            self._publish(self._plan.name, msgspec.json.encode(plan.identity))
        self._check_plan(plan.identity)
        if plan.listings and not (self.path / HUB_RECORD).is_file():
            self._publish_record(plan.hub_record)

    def trusted_engines(self) -> frozenset[str]:
        """By its own gate; also, 4,096 shares that read what 4,096 have written would keep the storage busy."""
        return read_engines([self._trusted])

    def _synced(self) -> set[int]:
        return self._read_synced([self.path / self._synced_name])

    def note_gate(self, exact: frozenset[str], wrong: frozenset[str]) -> None:
        """What one share has seen an engine do wrong puts its work in all shares in doubt."""
        for engine in wrong:
            self.ban_engine(engine)
        super().note_gate(exact, wrong)

    def settle(self, results: Sequence[TaskResult]) -> None:
        """Everything of this share is on the disk."""
        write_atomically(self.path / self._synced_name, msgspec.json.encode([result.index for result in results]))

    def _check_plan(self, identity: dict[str, Any]) -> None:
        """By what is there now: another share may have been quicker."""
        self.check_same(msgspec.json.decode(self._plan.read_bytes()), identity)

    def _publish(self, name: str, data: bytes) -> None:
        with self._private() as folder:
            write_atomically(folder / name, data)
            os.replace(folder / name, self.path / name)

    def _publish_record(self, record: HubRecord) -> None:
        with self._private() as folder:
            write_record(folder, record)
            os.replace(folder / HUB_RECORD, self.path / HUB_RECORD)

    @contextlib.contextmanager
    def _private(self) -> Iterator[Path]:
        """Two shares that write one file at a time must not write into the same unfinished one."""
        folder = self.path / f"{PARTS[:-1]}share-{secrets.token_hex(6)}"
        folder.mkdir()
        try:
            yield folder
        finally:
            remove(folder)


def run_share(config: PrepareConfig, observer: Observer, waiting: Waiting) -> ShareDone:
    assert config.task_index is not None
    assert config.task_count is not None
    tokenizer, plan = plan_for(config)
    tasks = share_of(plan.tasks, config.task_index, config.task_count)
    own = msgspec.structs.replace(plan, tasks=tasks, max_tokens=None, whole_bytes=plan.total_bytes)
    with tempfile.TemporaryDirectory(prefix="headrace-") as local:
        work = ShareFolder(config.folder, config.task_index, config.task_count, Path(local) / "tokenizer")
        work.create()
        with work.locked():
            if work.complete:
                already_there(config, plan, work, observer)
                return _done(config, plan, [], left=0)
            work.begin_share(plan)
            if not tasks:
                observer.notice(f"Share {config.task_index} of {config.task_count} has no task: there are fewer.")
                return _done(config, plan, [], left=_tasks_left(work, plan))
            results = Run(config, own, tokenizer, work, observer, waiting).run_to(lambda results: results)
            work.settle(results)
            return _done(config, plan, results, left=_tasks_left(work, plan))


def _done(config: PrepareConfig, plan: Plan, results: Sequence[TaskResult], *, left: int) -> ShareDone:
    counts = total_counts(results)
    assert config.task_index is not None
    assert config.task_count is not None
    return ShareDone(
        path=str(config.folder),
        task_index=config.task_index,
        task_count=config.task_count,
        tasks=len(results),
        tokens=counts.tokens,
        documents=counts.documents,
        rejects=counts.rejects,
        tasks_left=left,
        finish=command_of(replace(config, task_index=None, task_count=None, finish=True)),
    )


def _tasks_left(work: WorkFolder, plan: Plan) -> int:
    """By a glance at the names; the finish looks closely."""
    there = {path.name for path in work.path.glob("task-*[0-9].json")}
    return sum(f"task-{task.index:05d}.json" not in there for task in plan.tasks)


def finish_shares(config: PrepareConfig, observer: Observer, waiting: Waiting) -> TokenStore:
    """Check that every task is there, then end as a whole run does that has nothing left to do."""
    tokenizer, plan = plan_for(config)
    work = WorkFolder(config.folder)
    work.create()
    with work.locked():
        if work.complete:
            return already_there(config, plan, work, observer)
        work.begin(plan.identity)
        if missing := _missing(work, plan):
            raise HeadraceError(_what_is_missing(config, plan, missing, _share_count(work)))
        return Run(config, plan, tokenizer, work, observer, waiting).run()


def _missing(work: WorkFolder, plan: Plan) -> list[Task]:
    """Not done, or done by an engine that a share has found wrong, or that no share has brought to its gate."""
    doubtful = (set(FAST_ENGINES) - work.trusted_engines()) | work.banned_engines()
    results = work.results(plan.digest, [task.index for task in plan.tasks])
    kept = {index: result for index, result in results.items() if result.engine not in doubtful}
    return [task for task in wanted_tasks(plan, kept) if task.index not in kept]


def _share_count(work: WorkFolder) -> int | None:
    """The number of shares that was used last."""
    files = sorted(work.path.glob(f"{COUNTS}*"), key=lambda path: path.stat().st_mtime)
    return int(files[-1].name.removeprefix(COUNTS)) if files else None


def _what_is_missing(config: PrepareConfig, plan: Plan, missing: Sequence[Task], count: int | None) -> str:
    numbers = [task.index for task in missing]
    said = f"{len(missing):,} of {len(plan.tasks):,} tasks are not done: {ranges(numbers)}."
    again = f"then run this command again: {command_of(config)}"
    if count is None:
        command = command_of(replace(config, finish=False))
        return (
            f"{said} No share has been begun in {config.folder}. Run {command} --task-index I --task-count N, {again}"
        )
    owners = {task.index: place % count for place, task in enumerate(_dealt(plan.tasks))}
    shares = sorted({owners[number] for number in numbers})
    commands = [command_of(replace(config, finish=False, task_index=index, task_count=count)) for index in shares]
    lines = [f"  {command}" for command in commands[:COMMANDS]] + (["  ..."] if commands[COMMANDS:] else [])
    which = f"They are those of --task-index {ranges(shares)}. Run" if len(shares) > 1 else "Run"
    return "\n".join([f"{said} {which}", *lines, again])


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers as sbatch takes them: 0-3,7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in parts)
