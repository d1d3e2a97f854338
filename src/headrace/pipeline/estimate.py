"""What preparing a corpus takes, before it is begun: files, tasks, shards, memory, and a simulated run.

Tasks are cut by the very functions that cut those of a real run, from files of one size that are only imagined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from headrace.errors import UsageError
from headrace.pipeline.config import LEAST_TASK
from headrace.pipeline.estimate_rates import FIXED, REFERENCE, UNPACK, Profile
from headrace.pipeline.plan import LARGEST_TASK, TASKS_WANTED, group
from headrace.pipeline.process import REPORT_EVERY
from headrace.pipeline.simulate import Cluster, Outcome, simulate
from headrace.sources import ReadOptions, SourceFile, Span
from headrace.sources.splitting import group as group_rows
from headrace.sources.splitting import split
from headrace.sources.stripes import MOST_FILES, SHAREABLE
from headrace.storage.index import HEADER

MOST_TASKS = 2_000_000  # that are simulated: 6 s
ROW_GROUP = 4 << 20  # bytes of a Parquet file, about what hub datasets have
INDEX_BYTES = 20  # of an .idx file for each document
MANIFEST_BYTES = 233  # of metadata.json for each shard
OPEN_US = 0.9  # microseconds of processor for each shard that is opened: 73-103 ms for 100,000
FINISH_US = 12.0  # that writing the manifest takes for each shard
MOST_MAPS = 65_530  # vm.max_map_count where nobody raised it; a shard that is touched is one map
MOST_ADDRESSES = 1 << 47  # bytes a process can map on x86-64
# The driver of a run adds up the reports of all workers at each of them: microseconds, and more for each worker.
REPORT_US, REPORT_US_PER_WORKER = 10.0, 1.0


class Files(msgspec.Struct, frozen=True):
    """`count` files of one size, and a smaller last one unless it is 0."""

    count: int
    size: int
    last: int

    @property
    def number(self) -> int:
        return self.count + bool(self.last)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How much text, in what files, and what is known of tokenizing it."""

    text_bytes: float
    profiles: Mapping[str, Profile]  # by format
    shares: Mapping[str, float] = field(default_factory=lambda: {"jsonl": 1.0})  # of the text, by format
    file_bytes: float = 1e9
    task_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.text_bytes <= 1e18:
            raise UsageError(f"--bytes {self.text_bytes:g}: plan between 1 byte and 1 EB of text.")
        if not self.file_bytes >= 1:
            raise UsageError(f"--file-size {self.file_bytes:g}: a file has at least 1 byte.")
        if self.task_bytes is not None and self.task_bytes < 1:
            raise UsageError(f"--task-bytes {self.task_bytes}: it must be at least 1.")
        if not math.isclose(sum(self.shares.values()), 1.0, abs_tol=1e-6) or min(self.shares.values()) <= 0:
            raise UsageError(
                f"--format: the shares add up to {sum(self.shares.values()):g} and must add up to 1, each above 0."
            )

    @property
    def files(self) -> dict[str, Files]:
        """By format."""
        each = round(self.file_bytes)
        return {name: Files(total // each, each, total % each) for name, total in self._inputs.items()}

    @property
    def input_bytes(self) -> int:
        return sum(self._inputs.values())

    @property
    def tokens(self) -> float:
        return sum(self.text_bytes * share / self.profiles[name].bytes_per_token for name, share in self.shares.items())

    @property
    def documents(self) -> float:
        by_format = self.shares.items()
        return sum(self.text_bytes * share / self.profiles[name].bytes_per_document for name, share in by_format)

    @property
    def itemsize(self) -> int:
        return max(self.profiles[name].itemsize for name in self.shares)

    @property
    def target(self) -> int:
        """Input bytes of a task: as asked for, or as a run chooses them."""
        return self.task_bytes or min(LARGEST_TASK, max(LEAST_TASK, self.input_bytes // TASKS_WANTED))

    @property
    def _inputs(self) -> dict[str, int]:
        text = {name: self.text_bytes * share for name, share in self.shares.items()}
        return {name: max(1, round(size * self.profiles[name].file_bytes_per_byte)) for name, size in text.items()}


class Tasks(msgspec.Struct, frozen=True):
    """One entry for each task of a run."""

    input_bytes: list[int]
    seconds: list[float]  # of a core
    moved: list[float]  # bytes, read and written


class Prediction(msgspec.Struct, kw_only=True):
    """One workload on one cluster."""

    workers: int
    tasks: int
    largest_task_bytes: int
    files: int
    input_bytes: int
    text_bytes: float
    tokens: float
    documents: float
    output_bytes: float
    shards: int
    output_files: int
    manifest_bytes: int
    open_seconds: float
    core_mb_per_s: float  # while all cores of a node work
    driver_load: float  # of the process that follows all workers; above 1 they wait for it
    ideal_seconds: float  # all workers busy from the first moment to the last
    seconds: float
    worker_hours: float
    read_bytes_per_s: float  # on average while tasks run, as the next one
    write_bytes_per_s: float
    peak_bytes_per_s: float  # read and written, all workers at once and nothing in their way
    memory_bytes_per_node: float
    memory_bytes: float
    cost: float | None
    outcome: Outcome


def predict(workload: Workload, cluster: Cluster, *, price: float | None = None) -> Prediction:
    """Simulate a run of the workload; `price` is for an hour of one worker."""
    load = driver_load(cluster)
    tasks = make_tasks(workload, cluster.workers)
    if cluster.array:
        tasks = dealt(tasks)
    shards = len(tasks.input_bytes)
    cluster = replace(
        cluster,
        finish_seconds=cluster.finish_seconds + shards * FINISH_US / 1e6,
        reference_factor=max(1.0, sum(_core_rate(workload, crowded=True).values()) / len(workload.shares) / REFERENCE),
    )
    outcome = simulate([one * max(1.0, load) for one in tasks.seconds], tasks.moved, cluster)
    running = max(outcome.last_task - cluster.start_seconds, 1e-9)
    output = output_bytes(workload, shards)
    peak = max(profile.peak_mb for name, profile in workload.profiles.items() if name in workload.shares) * 1e6
    work = sum(tasks.seconds)
    hours = cluster.workers * outcome.seconds / 3600
    return Prediction(
        workers=cluster.workers,
        tasks=shards,
        largest_task_bytes=max(tasks.input_bytes),
        files=sum(files.number for files in workload.files.values()),
        input_bytes=workload.input_bytes,
        text_bytes=workload.text_bytes,
        tokens=workload.tokens,
        documents=workload.documents,
        output_bytes=output,
        shards=shards,
        output_files=2 * shards,
        manifest_bytes=MANIFEST_BYTES * shards,
        open_seconds=OPEN_US * shards / 1e6,
        core_mb_per_s=workload.text_bytes / work / 1e6,
        driver_load=load,
        ideal_seconds=work / cluster.workers,
        seconds=outcome.seconds,
        worker_hours=hours,
        read_bytes_per_s=workload.input_bytes / running,
        write_bytes_per_s=output / running,
        peak_bytes_per_s=sum(tasks.moved) / work * cluster.workers,
        memory_bytes_per_node=peak * min(cluster.workers, cluster.workers_per_node),
        memory_bytes=peak * cluster.workers,
        cost=None if price is None else hours * price,
        outcome=outcome,
    )


def make_tasks(workload: Workload, workers: int) -> Tasks:
    """The tasks of a run, with what each costs."""
    sizes: list[int] = []
    seconds: list[float] = []
    moved: list[float] = []
    rates = _core_rate(workload, crowded=workers > 1)
    for name, files in workload.files.items():
        profile = workload.profiles[name]
        extra = _unpacking(workload, name, workers)
        for size in task_sizes(name, files, workload.target):
            text = size / profile.file_bytes_per_byte
            sizes.append(size)
            seconds.append(text / rates[name] + text * extra)
            written = text / profile.bytes_per_token * workload.itemsize
            moved.append(size + written + INDEX_BYTES * text / profile.bytes_per_document)
    return Tasks(sizes, seconds, moved)


def dealt(tasks: Tasks) -> Tasks:
    """As an array of jobs deals them: the largest first."""
    order = sorted(range(len(tasks.input_bytes)), key=lambda index: -tasks.input_bytes[index])
    return Tasks(
        [tasks.input_bytes[index] for index in order],
        [tasks.seconds[index] for index in order],
        [tasks.moved[index] for index in order],
    )


def task_sizes(format: str, files: Files, target: int) -> list[int]:
    """Input bytes of each task. Files of one size are cut alike and grouped alike, so one of them is cut for all."""
    expected = (files.count * files.size + files.last) / target
    if expected > MOST_TASKS:
        raise UsageError(
            f"About {expected:,.0f} tasks of {target:,} bytes are more than the {MOST_TASKS:,} that can be planned. "
            f"Pass a larger --task-bytes."
        )
    if files.size <= target:
        return _several_files_each(files, target)
    share = files.number <= MOST_FILES
    one = _spans(format, "one", files.size, target, share)
    last = _spans(format, "last", files.last, target, share) if files.last else []
    alike = [task.size for task in group(one, target, together=False)] if files.count else []
    if not files.count:
        return [task.size for task in group(last, target, together=False)]
    return alike * (files.count - 1) + [task.size for task in group([*one, *last], target, together=False)]


def _several_files_each(files: Files, target: int) -> list[int]:
    """What `group` makes of whole files: as many in a task as are not more than the target."""
    each = target // files.size
    full, rest = divmod(files.count, each)
    left = rest * files.size + files.last
    if full and left and each * files.size + left <= target:  # only the last file is left, and it has room
        return [each * files.size] * (full - 1) + [each * files.size + left]
    return [each * files.size] * full + ([left] if left else [])


def driver_load(cluster: Cluster) -> float:
    """The share of its time that the process takes which follows all workers; an array of jobs has none."""
    if cluster.array:
        return 0.0
    each = (REPORT_US + REPORT_US_PER_WORKER * cluster.workers) / 1e6
    return cluster.workers / REPORT_EVERY * each


def output_bytes(workload: Workload, shards: int) -> float:
    """All .bin and .idx files and the manifest."""
    index = INDEX_BYTES * workload.documents + shards * (HEADER.size + 8)
    return workload.tokens * workload.itemsize + index + MANIFEST_BYTES * shards


def advise_task_bytes(workload: Workload) -> int | None:
    """A larger task where a run would make more shards than a process may map; None where it would not."""
    shards = sum(len(task_sizes(name, files, workload.target)) for name, files in workload.files.items())
    if shards < MOST_MAPS:
        return None
    return 1 << math.ceil(math.log2(workload.input_bytes / (0.9 * MOST_MAPS)))


def with_usual_start(cluster: Cluster, start: float | None, elsewhere: float = 30.0) -> Cluster:
    """Seconds until the first task as told; else those of a run on one machine, or of a container on another."""
    usual = FIXED if cluster.nodes == 1 else elsewhere
    return replace(cluster, start_seconds=usual if start is None else start)


def _spans(format: str, path: str, size: int, target: int, share: bool) -> list[Span]:
    kind, _, compression = format.partition(".")
    if kind == "parquet":
        return _row_groups(path, size, target)
    # A text file is a document; one corpus of large ones is cut where its documents are, which a separator stands for.
    options = ReadOptions(separator="\n\n" if kind == "text" else None)
    return split(SourceFile(path, size, kind, compression or None), options, target, share=share)


def _row_groups(path: str, size: int, target: int) -> list[Span]:
    if size <= target:
        return [Span(path, "parquet", size)]
    count = max(1, round(size / ROW_GROUP))
    cuts, shares = group_rows([1] * count, size, target)
    return [Span(path, "parquet", shares[i + 1] - shares[i], None, cuts[i], cuts[i + 1]) for i in range(len(cuts) - 1)]


def _core_rate(workload: Workload, *, crowded: bool) -> dict[str, float]:
    """Text bytes/s of a core, by format."""
    chosen = {name: workload.profiles[name] for name in workload.shares}
    return {name: 1e6 * one.core_mb_per_s * (one.crowded if crowded else 1.0) for name, one in chosen.items()}


def _unpacking(workload: Workload, format: str, workers: int) -> float:
    """Seconds for each byte of text that all workers but one spend on the way to their parts of shared files."""
    compression = format.partition(".")[2]
    if compression not in SHAREABLE or workload.files[format].number > MOST_FILES:
        return 0.0
    return (workers - 1) / UNPACK
