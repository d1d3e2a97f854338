"""prepare: raw text -> a dataset. Plans, runs, resumes, finishes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

import headrace.errors
from headrace.errors import HeadraceError, SourceNotFound
from headrace.files import Syncer
from headrace.pipeline.command import command_of
from headrace.pipeline.config import LEAST_TASK, PrepareConfig
from headrace.pipeline.finish import check_rejects, finish
from headrace.pipeline.gate import Choice, Gate, decide, likely_engine
from headrace.pipeline.hub_record import HubRecord, read_record, write_record
from headrace.pipeline.launch import Waiting
from headrace.pipeline.local import Pool, run_inline
from headrace.pipeline.plan import Plan, Task, make_plan
from headrace.pipeline.progress import Observer, Progress
from headrace.pipeline.results import Differs, Failed, Finished, Job, Message, TaskResult
from headrace.pipeline.tracker import Tracker
from headrace.pipeline.workfolder import NAME as WORK
from headrace.pipeline.workfolder import WorkFolder
from headrace.sources import Source, open_source
from headrace.storage import TokenStore
from headrace.telemetry import EventLog
from headrace.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from headrace.pipeline.cluster import RayPool

End = TypeVar("End")


def run(config: PrepareConfig, observer: Observer, waiting: Waiting) -> TokenStore:
    """A whole run, in the worker processes that wait for it already."""
    tokenizer, plan = plan_for(config)
    work = WorkFolder(config.folder)
    work.create()
    with work.locked():
        if (record := _record_of(config)) is not None:
            record.tell_pinned(plan.listings, observer)
        if config.force:
            work.remove_own_files()
        if work.complete:
            return already_there(config, plan, work, observer)
        work.begin(plan.identity)
        write_record(work.path, plan.hub_record)
        return Run(config, plan, tokenizer, work, observer, waiting).run()


def plan_for(config: PrepareConfig) -> tuple[Tokenizer, Plan]:
    """What a run would do; writes nothing."""
    tokenizer = load_tokenizer(config.tokenizer)
    if config.eos_token is not None:
        tokenizer = tokenizer.with_eos(config.eos_token)
    record = _record_of(config)
    return tokenizer, make_plan(config, open_config_source(config, record), tokenizer, record)


def _record_of(config: PrepareConfig) -> HubRecord | None:
    return None if config.force else read_record(config.folder / WORK)


def open_config_source(config: PrepareConfig, record: HubRecord | None = None) -> Source:
    """The input; a dataset that lies inside the input folder is none of it."""
    source = open_source(
        config.source,
        text_field=config.text_field,
        split=config.split,
        revision=config.revision,
        separator=config.separator,
        keep_damaged=config.keep_damaged,
        known=record.listings if record is not None else (),
    )
    files = [file for file in source.files if config.folder not in Path(file.path).parents]
    if not files:
        raise SourceNotFound(f"{source.name}: all files lie in --out {config.folder} itself. Name another --out.")
    return msgspec.structs.replace(source, files=files)


def already_there(config: PrepareConfig, plan: Plan, work: WorkFolder, observer: Observer) -> TokenStore:
    store = TokenStore(config.folder)
    work.check_same(store.metadata.config, msgspec.to_builtins(plan.identity))
    observer.notice(f"{config.folder} is prepared already, with these very settings: nothing to do.")
    return store


class Run:
    """One run of a plan, from whatever is finished already to the manifest."""

    def __init__(
        self,
        config: PrepareConfig,
        plan: Plan,
        tokenizer: Tokenizer,
        work: WorkFolder,
        observer: Observer,
        waiting: Waiting,
    ) -> None:
        self._config, self._plan, self._tokenizer, self._work = config, plan, tokenizer, work
        self._observer, self._waiting = observer, waiting
        self._events = EventLog(work.events)
        self._results = work.results(plan.digest, [task.index for task in plan.tasks])
        self._syncer = Syncer(config.folder)
        self._progress: Progress | None = None
        self._last_event = 0.0
        self._likely_engine = likely_engine(config, plan, work.banned_engines())
        self._pool: Pool | RayPool | None = None

    def run(self) -> TokenStore:
        return self.run_to(self._finish)

    def run_to(self, end: Callable[[list[TaskResult]], End]) -> End:
        """Do what is left of the plan, then what is to be done with the results."""
        try:
            self._tell_start()
            self._say_resumed()
            self._save_tokenizer()
            self._pool = self._start_workers()
            gate = self._gate()
            engine = self._likely_engine if self._pool is not None else None
            while (results := self._run_with(engine or gate.choice().engine, gate)) is None:
                engine = self._next_engine(gate)
            self._syncer.finish()
            return end(results)
        except HeadraceError as error:
            self._events.write("prepare_failed", error=str(error))
            raise
        finally:
            if self._pool is not None:
                self._pool.stop()
            self._syncer.stop()
            self._events.close()

    def _finish(self, results: list[TaskResult]) -> TokenStore:
        store = finish(self._config, self._plan, self._tokenizer, results, self._work)
        self._tell_done(store)
        return store

    def _start_workers(self) -> Pool | RayPool | None:
        """None for a job so small that it is done in this process."""
        tasks = len(self._tasks_left())
        try:
            if tasks and self._config.on == "ray":
                from headrace.pipeline.cluster import RayPool

                return RayPool(self._job(), self._config)
            if self._plan.total_bytes <= LEAST_TASK or not tasks:
                return None
            return Pool(self._job(), min(self._config.worker_count, tasks), self._waiting)
        finally:
            self._waiting.stop()

    def _say_resumed(self) -> None:
        if self._results:
            self._observer.notice(f"Going on: {len(self._results)} of {len(self._plan.tasks)} tasks are done already.")
        for result in self._results.values():
            self._sync(result)

    def _save_tokenizer(self) -> None:
        folder = self._work.tokenizer
        self._tokenizer.save(folder)
        for path in [*folder.iterdir(), folder]:
            self._syncer.add(path)

    def _sync(self, result: TaskResult) -> None:
        for shard in result.shards:
            for suffix in ("bin", "idx"):
                self._syncer.add(self._config.folder / f"{shard.name}.{suffix}")

    def _gate(self) -> Gate:
        banned, trusted = self._work.banned_engines(), self._work.trusted_engines()

        def decide_and_note() -> Choice:
            choice = decide(self._config, self._plan, self._tokenizer, banned, self._observer, self._events)
            exact = (choice.exact | trusted) - banned
            self._work.note_gate(exact, choice.wrong)
            return choice._replace(exact=exact)

        return Gate(decide_and_note)

    def _next_engine(self, gate: Gate) -> str:
        """What to go on with after an engine was found wrong, or could not be loaded."""
        engine = gate.choice().engine
        return "reference" if engine in self._work.banned_engines() else engine

    def _run_with(self, engine: str, gate: Gate) -> list[TaskResult] | None:
        """Do what is left; None when the engine was found wrong and its work has been thrown away."""
        tasks = self._tasks_left()
        tracker = Tracker(self._plan.tasks, list(self._results.values()))
        self._last_event = 0.0
        with contextlib.closing(self._messages(engine, tasks)) as messages:
            for message in messages:
                if isinstance(message, Differs):
                    self._distrust(message)
                    return None
                if isinstance(message, Failed):
                    if message.error == "Unsupported":
                        return None
                    raise _as_error(message)
                if gate.has_refused(engine):
                    break
                tracker.take(message)
                if isinstance(message, Finished):
                    self._results[message.result.index] = message.result
                    self._sync(message.result)
                self._tell(tracker)
                if self._enough():
                    break
        if not self._keep_what_passes(gate) or not gate.passes(engine):
            return None
        return self._limit(engine, [self._results[task.index] for task in self._wanted_tasks()])

    def _keep_what_passes(self, gate: Gate) -> bool:
        """Throw away what engines made that do not pass the gate, in this run or before; False if there was any."""
        doubtful = [result for result in self._results.values() if not gate.passes(result.engine)]
        for result in doubtful:
            self._forget(result.index)
        return not doubtful

    def _forget(self, index: int) -> None:
        self._results.pop(index, None)
        self._work.forget(index)

    def _messages(self, engine: str, tasks: Sequence[Task]) -> Generator[Message, None, None]:
        pool, self._pool = self._pool or self._start_workers(), None
        if pool is None:
            return run_inline(self._job(), tasks, engine, self._tokenizer)
        return pool.run(tasks, engine)

    def _job(self) -> Job:
        config, plan = self._config, self._plan
        return Job(
            folder=str(config.folder),
            parts=str(self._work.path),
            tokenizer=str(self._work.tokenizer),
            likely_engine=self._likely_engine,
            read=plan.read,
            dtype=plan.dtype,
            eos_id=plan.eos_id,
            bos_id=plan.bos_id,
            val_fraction=config.val_fraction,
            val_seed=config.val_seed,
            verify=config.verify,
            batch_size=config.batch_size,
            sha256=config.sha256,
            plan=plan.digest,
        )

    def _tell_start(self) -> None:
        self._events.write(
            "prepare_start",
            tasks=len(self._plan.tasks),
            resumed=len(self._results),
            total_input_bytes=self._plan.total_bytes,
            command=command_of(self._config),
        )

    def _tell(self, tracker: Tracker) -> None:
        progress = self._progress = tracker.progress()
        self._observer.progress(progress)
        if progress.seconds - self._last_event >= 1.0 or progress.tasks_done == progress.tasks:
            self._last_event = progress.seconds
            states = msgspec.to_builtins(tracker.task_states())
            self._events.write("prepare_progress", **msgspec.to_builtins(progress), **states)
        done = progress.input_bytes / max(self._plan.whole_bytes or progress.total_input_bytes, 1)
        check_rejects(self._config, self._work, progress.counts, min(done, 0.999))

    def _tell_done(self, store: TokenStore) -> None:
        """The last word on the run, so that nobody needs the progress before it."""
        told = msgspec.to_builtins(self._progress) if self._progress is not None else {}
        kept = ("seconds", "text_mb_per_s", "tokens_per_s", "stage_shares")
        metadata = store.metadata
        self._events.write(
            "prepare_done",
            tokens=metadata.total_tokens,
            documents=metadata.documents,
            val_tokens=metadata.val_tokens,
            val_documents=metadata.val_documents,
            rejects=metadata.rejects,
            **{name: told[name] for name in kept if name in told},
        )

    def _distrust(self, message: Differs) -> None:
        """Every document that engine encoded is in doubt, not only this one."""
        self._work.ban_engine(message.engine)
        doubtful = [result.index for result in self._results.values() if result.engine == message.engine]
        for index in [*doubtful, message.index]:
            self._forget(index)
        self._events.write("engine_differs", engine=message.engine, reason=message.reason, redone=len(doubtful))
        self._observer.notice(
            f"{message.engine} was wrong: {message.reason}. Its {len(doubtful)} finished tasks are done again with the "
            f"reference engine."
        )

    def _tasks_left(self) -> list[Task]:
        return [task for task in self._wanted_tasks() if task.index not in self._results]

    def _wanted_tasks(self) -> list[Task]:
        return wanted_tasks(self._plan, self._results)

    def _enough(self) -> bool:
        return self._plan.max_tokens is not None and not self._tasks_left()

    def _limit(self, engine: str, results: list[TaskResult]) -> list[TaskResult] | None:
        """--max-chunks: do the last task again with just the tokens that are missing, and drop those behind it."""
        if self._plan.max_tokens is None:
            return results
        before = sum(result.train_tokens for result in results[:-1])
        last = msgspec.structs.replace(self._plan.tasks[len(results) - 1], max_tokens=self._plan.max_tokens - before)
        if results[-1].max_tokens != last.max_tokens:
            self._work.forget(last.index)
            for message in run_inline(self._job(), [last], engine, self._tokenizer):
                if isinstance(message, Differs):
                    self._distrust(message)
                    return None
                if isinstance(message, Failed):
                    raise _as_error(message)
                if isinstance(message, Finished):
                    results = [*results[:-1], message.result]
                    self._sync(message.result)
        for task in self._plan.tasks[len(results) :]:
            self._work.forget(task.index)
        return results


def wanted_tasks(plan: Plan, results: Mapping[int, TaskResult]) -> list[Task]:
    """All tasks, or with --max-chunks the first ones that together hold enough tokens."""
    limit, total = plan.max_tokens, 0
    for count, task in enumerate(plan.tasks, start=1):
        result = results.get(task.index)
        if limit is None or result is None:
            return plan.tasks
        total += result.train_tokens
        if total >= limit:
            return plan.tasks[:count]
    return plan.tasks


def _as_error(message: Failed) -> Exception:
    kind = getattr(headrace.errors, message.error, None)
    if isinstance(kind, type) and issubclass(kind, HeadraceError) and message.error != "MissingDependency":
        return kind(message.message)
    return HeadraceError(f"{message.error}: {message.message}\n{message.trace}".rstrip())
