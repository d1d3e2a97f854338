"""headrace diagnose data"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.diagnose_output import output_options, show
from headrace.cli.measuring import measuring
from headrace.cli.output import amount, out_console, print_facts
from headrace.cli.tables import plain_table, print_table

if TYPE_CHECKING:
    from rich.table import Table

    from headrace.diagnosis.data_findings import Findings
    from headrace.diagnosis.report import Report

MEMORY = {
    "populate": "reads it all into memory in the background",
    "random": "reads nothing ahead, and all rows of a batch at once",
    "normal": "reads ahead as the system likes",
}

COSTS = (
    "time to open",
    "first batch",
    "minor page faults a batch",
    "major page faults a batch",
    "needed a batch",
    "read from disk a batch",
    "read for each byte needed",
)


@click.command(short_help="Whether training will wait for a prepared dataset.")
@click.argument("data", nargs=-1, required=True, metavar="DIR[=WEIGHT]...")
@click.option("--seq-len", type=click.IntRange(1), help="Tokens per sequence.  [default: the data's chunk size]")
@click.option("--batch-size", type=click.IntRange(1), default=16, show_default=True, help="Sequences per batch.")
@click.option("--dtype", type=click.Choice(["int64", "int32", "uint16"]), default="int64", show_default=True,
              help="Of the ids in a batch.")  # fmt: skip
@click.option("--memory", type=click.Choice(["auto", "populate", "random", "normal"]), default="auto",
              show_default=True, help="How the loader reads its maps.")  # fmt: skip
@click.option("--seconds", type=float, default=10.0, show_default=True, help="About how long to measure.")
@click.option("--tokens-per-second", type=float, metavar="N", help="What training needs, all devices together.")
@click.option("--run", type=click.Path(path_type=Path), metavar="RUN", help="Take that from a run of headrace train.")
@click.option("--keep-cache", is_flag=True, help="Leave the page cache as it is: nothing cold is measured.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which rows are read.")
@output_options
def data(data: tuple[str, ...], as_json: bool, html: Path | None, **settings: Any) -> None:
    """Measure how fast the loader gives DIR, a folder that 'headrace prepare' made, against what training needs.

    From memory, and from a cold disk after dropping just this dataset's pages from the page cache. Several folders are
    mixed as in `headrace train`.

    \b
    headrace diagnose data data/web --tokens-per-second 500000
    headrace diagnose data data/web=0.8 data/code=0.2 --run runs/NAME
    """
    from headrace.cli.train import data_of
    from headrace.diagnosis.data import DataConfig, diagnose_data

    mix, _ = data_of({"data": data, "more_data": (), "dataset": None, "pretokenized": False, "text": ()})
    config = DataConfig(data=mix, **settings)
    with measuring() as progress:
        report = diagnose_data(config, progress)
    if not as_json:
        print_tables(report)
    show(report, as_json, html)


def print_tables(report: Report) -> None:
    from headrace.diagnosis.data_findings import findings_of

    console, found = out_console(), findings_of(report)
    print_facts(console, list(_summary(found)))
    for table in (rate_table(found), batch_table(found), need_table(found)):
        console.print()
        print_table(console, table)
    for note in report.facts["notes"]:
        console.print(note, style="label", markup=False)
    console.print()


def _summary(found: Findings) -> Iterator[tuple[str, str]]:
    from headrace.diagnosis.tokenization_findings import plural
    from headrace.files import human_bytes

    size = human_bytes(found.bytes)
    where = f", on {found.mount.filesystem} ({found.mount.device})" if found.mount else ""
    yield "data", f"{amount(found.tokens)} tokens, {size} in {plural(found.shards, 'shard')} of {found.stored}{where}"
    yield "batches", f"{found.batch_size} x {found.seq_len:,} tokens, {found.dtype}, shuffled"
    limit = f", limited to {human_bytes(found.memory.limit)}" if found.memory.limit is not None else ""
    fits = "fits" if found.fits else "does not fit"
    yield "memory", f"{human_bytes(found.memory.available)} available{limit}: the dataset {fits}"
    yield "loader", f"memory={found.access}: {MEMORY[found.access]}"
    if found.resident is not None:
        yield "cache", f"{human_bytes(found.resident)} of {size} were in the page cache"


def rate_table(found: Findings) -> Table:
    """Medians of rounds, and how far they lay apart."""
    from headrace.files import human_bytes

    table = plain_table("", "tokens/s", "low - high", "batches/s", "bytes/s")
    per_batch = found.batch_size * found.seq_len
    rows = [("loader, from memory", found.warm), ("copy limit", found.copy)]
    if found.cold is not None:
        rows.insert(1, ("loader, cold", found.cold.tokens_per_second))
    for name, rate in rows:
        read = human_bytes(found.bytes_per_second(rate.value))
        apart = f"{amount(rate.low)} - {amount(rate.high)}"
        table.add_row(name, amount(rate.value), apart, f"{rate.value / per_batch:,.0f}", read)
    for name, disk in (("disk, in order", found.sequential), (f"disk, {human_bytes(found.row_bytes)}", found.random)):
        if disk is not None:
            apart = f"{human_bytes(disk.low)} - {human_bytes(disk.high)}"
            table.add_row(name, "", apart, "", human_bytes(disk.value))
    return table


def batch_table(found: Findings) -> Table:
    """What a start and a batch cost."""
    from headrace.files import human_bytes

    cold, needed = found.cold, human_bytes(found.batch_bytes)
    table = plain_table("", "from memory", *(("cold",) if cold else ()))
    warm = [
        milliseconds(found.warm_open),
        milliseconds(found.warm_first),
        f"{found.warm_minor:,.1f}",
        f"{found.warm_major:,.1f}",
        needed,
    ]
    if cold is None:
        for name, cell in zip(COSTS, warm, strict=False):
            table.add_row(name, cell)
        return table
    colds = [
        milliseconds(cold.open_seconds.value),
        milliseconds(cold.first_seconds.value),
        f"{cold.minor:,.1f}",
        f"{cold.major:,.1f}",
        needed,
    ]
    if cold.read_bytes is not None:
        colds += [human_bytes(cold.read_bytes), f"{found.amplification:,.2f}"]
    for name, *cells in zip_longest(COSTS[: len(colds)], warm, colds, fillvalue=""):
        table.add_row(name, *cells)
    return table


def need_table(found: Findings) -> Table:
    """How many times what is needed, and the share of a step that is spent waiting."""
    from headrace.diagnosis.data_findings import times

    rows = found.needs()
    cold = found.cold is not None
    table = plain_table("training at", "from memory", "waits", *(("cold", "waits") if cold else ()))
    for row in rows:
        cells = [times(row["warm_times"]), waits(row["warm_wait"])]
        if cold:
            cells += [times(row["cold_times"]), waits(row["cold_wait"])]
        table.add_row(f"{amount(row['tokens_per_second'])} tokens/s", *cells)
    return table


def waits(share: float) -> str:
    from headrace.diagnosis.tokenization_findings import percent

    return percent(share) if share else "0%"


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.00995 else f"{1e3 * seconds:.1f} ms"
