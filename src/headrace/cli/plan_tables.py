"""How `headrace plan` looks: the corpus, a line for each number of workers, where their time goes, what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.output import amount, count, out_console, print_facts, rough
from headrace.cli.tables import plain_table, print_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headrace.pipeline.estimate import Prediction, Workload
    from headrace.pipeline.simulate import Cluster

MUCH = 0.1  # of the time that a note is worth


def show(workload: Workload, clusters: Sequence[Cluster], predictions: Sequence[Prediction]) -> None:
    from headrace.files import human_bytes

    console = out_console()
    console.print(f"[title]The plan[/] for {human_bytes(workload.text_bytes)} of text [label](nothing was read)[/]")
    print_facts(console, list(_facts(workload, clusters[0], predictions[0])))
    console.print()
    print_table(console, run_table(predictions))
    console.print()
    print_table(console, time_table(predictions))
    _print_notes(console, list(notes(workload, clusters, predictions)))


def _facts(workload: Workload, cluster: Cluster, first: Prediction) -> Iterator[tuple[str, str | Text]]:
    from headrace.files import human_bytes

    formats = ", ".join(f"{share:.0%} {name}" if share < 1 else name for name, share in workload.shares.items())
    yield "input", f"{human_bytes(first.input_bytes)} of {formats} in {count(first.files, 'file')}"
    yield "tokens", f"{amount(first.tokens)} in {amount(first.documents)} documents"
    largest = f"the largest reads {human_bytes(first.largest_task_bytes)}"
    yield "tasks", f"{first.tasks:,}, {largest}"
    size = f"{human_bytes(first.output_bytes)}, {8 * workload.itemsize} bits a token"
    yield "output", f"{size}, in {count(first.shards, 'shard')} ({first.output_files:,} files)"
    opening = f"{max(1.0, 1e3 * first.open_seconds):.0f} ms"
    yield "manifest", f"{human_bytes(first.manifest_bytes)}; a dataset opens in about {opening}"
    for name in workload.shares:
        profile = workload.profiles[name]
        alone = f"{profile.core_mb_per_s:.0f} MB/s a core alone, "
        crowded = f"{profile.core_mb_per_s * profile.crowded:.0f} MB/s"
        yield "rate", f"{alone if profile.crowded < 1 else ''}{crowded} among others: {profile.said}"
    yield "memory", f"{human_bytes(first.memory_bytes / first.workers)} a worker"
    yield "simulated", _assumed(cluster)


def _assumed(cluster: Cluster) -> str:
    nodes = f"nodes of {cluster.workers_per_node}: {cluster.slow_nodes:.0%} are {cluster.slowdown:g} times slower, "
    lost = f"each is lost {cluster.failures_per_hour:g} times an hour for {cluster.restart_seconds:.0f} s"
    limit = "" if cluster.storage_bytes_per_s == float("inf") else (
        f"; storage gives {8 * cluster.storage_bytes_per_s / 1e9:g} Gbit/s"
    )  # fmt: skip
    return f"{nodes}{lost}{limit}; {'an array of jobs' if cluster.array else 'tasks for whoever is free'}"


def run_table(predictions: Sequence[Prediction]) -> Table:
    from headrace.files import human_bytes

    table = plain_table("workers", "time", "of ideal", "core hours", "cost", "read/s", "write/s", "memory")
    for one in predictions:
        table.add_row(
            f"{one.workers:,}",
            rough(one.seconds),
            f"{one.ideal_seconds / one.seconds:.0%}",
            f"{one.worker_hours:,.0f}" if one.worker_hours >= 10 else f"{one.worker_hours:.2f}",
            "-" if one.cost is None else f"{one.cost:,.2f}" if one.cost < 1e4 else f"{one.cost:,.0f}",
            human_bytes(one.read_bytes_per_s),
            human_bytes(one.write_bytes_per_s),
            human_bytes(one.memory_bytes),
        )
    return table


def time_table(predictions: Sequence[Prediction]) -> Table:
    """The time of all workers together, in shares."""
    table = plain_table("workers", "working", "driver", "storage", "starting", "lost", "idle", "finishing", "retries")
    for one in predictions:
        out = one.outcome
        whole = one.workers * one.seconds
        working = out.working / max(1.0, one.driver_load)
        waits = (out.working - working, out.storage_wait, out.starting, out.lost, out.idle, out.finishing)
        shares = (_share(part / whole) for part in (working, *waits))
        table.add_row(f"{one.workers:,}", *shares, f"{out.retries:,}")
    return table


def _share(part: float) -> str:
    return "-" if part < 5e-5 else f"{part:.1%}"


def notes(workload: Workload, clusters: Sequence[Cluster], predictions: Sequence[Prediction]) -> Iterator[str]:
    """What stands in the way, and what to do about it."""
    yield from _shard_notes(workload, predictions[0])
    for cluster, one in zip(clusters, predictions, strict=True):
        yield from _notes_of(cluster, one)


def _shard_notes(workload: Workload, first: Prediction) -> Iterator[str]:
    from headrace.pipeline.estimate import MOST_ADDRESSES, MOST_MAPS, advise_task_bytes

    advice = advise_task_bytes(workload)
    if advice is not None:
        yield (
            f"{first.shards:,} shards: a process may map {MOST_MAPS:,} files where nobody raised vm.max_map_count. "
            f"Pass --task-bytes {advice >> 20}MiB here, and --task-bytes {advice} to headrace prepare."
        )
    if first.output_bytes > MOST_ADDRESSES:
        yield (
            f"{first.output_bytes / 1e12:.0f} TB of tokens: a process can map {MOST_ADDRESSES / 1e12:.0f} TB. Prepare "
            "two datasets and mix them in two processes, or take a tokenizer with 16-bit ids."
        )


def _notes_of(cluster: Cluster, one: Prediction) -> Iterator[str]:
    whole, out = one.workers * one.seconds, one.outcome
    if one.tasks < one.workers:
        yield f"{one.workers:,} workers: there are {one.tasks:,} tasks. Use smaller files, or a smaller --task-bytes."
    if one.driver_load > 1:
        yield (
            f"{one.workers:,} workers: the process that follows them would need {one.driver_load:.1f} times its time, "
            "and they wait for it. Run them as an array of jobs: --array"
        )
    if out.storage_wait > MUCH * whole:
        wanted = 8 * one.peak_bytes_per_s / 1e9
        yield f"{one.workers:,} workers wait for storage: they would take {wanted:,.0f} Gbit/s."
    if out.finishing > MUCH * whole and cluster.sync_seconds:
        yield f"{one.workers:,} workers: files are made durable one by one, long after the tasks. Use larger tasks."
    if out.stops:
        yield f"{one.workers:,} workers: {count(out.stops, 'task')} lost their worker at every attempt: smaller tasks."


def _print_notes(console: Console, found: Sequence[str]) -> None:
    from rich.text import Text

    for number, note in enumerate(found):
        console.print(*([""] if not number else []), Text.assemble(("note ", "warn"), note), sep="\n")
