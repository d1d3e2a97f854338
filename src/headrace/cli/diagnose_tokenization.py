"""headrace diagnose tokenization"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.diagnose_output import output_options, show
from headrace.cli.measuring import measuring
from headrace.cli.output import amount, out_console, print_facts
from headrace.cli.tables import plain_table, print_table
from headrace.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from headrace.diagnosis.report import Report


HEADS = {"one by one": "one\nby one"}


@click.command(short_help="What tokenizing a corpus costs, and what preparing it would save.")
@click.argument("source", required=False)
@click.option("--dataset", help="A catalogue name; the same as SOURCE.  [default: python-stdlib]")
@click.option("-t", "--tokenizer", default="headrace-32k", show_default=True, help="Name, file, folder or hub id.")
@click.option("--seconds", type=float, default=10.0, show_default=True, help="About how long to measure.")
@click.option("--tokens-per-second", type=float, metavar="N", help="How fast training is when its data are there.")
@click.option("--run", type=click.Path(path_type=Path), metavar="RUN", help="Take that from a run of headrace train.")
@click.option("--epochs", type=float, default=1.0, show_default=True, help="How often training reads the corpus.")
@click.option(
    "-j", "--workers", "--num-workers", type=int, help="Threads, and cores to prepare with.  [default: one per core]"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Which places of the corpus are measured.")
@click.option("--text-field", help="JSON key or column.  [default: text, content, article, ...]")
@click.option("--split", help="Split of a catalogue or hub dataset.  [default: train]")
@click.option("--revision", help="Revision of a hub dataset.")
@click.option("--separator", help="What divides documents in text files.  [default: a file is a document]")
@output_options
def tokenization(source: str | None, dataset: str | None, as_json: bool, html: Path | None, **settings: Any) -> None:
    """Measure tokenizing on a sample of SOURCE, and extrapolate to all of it.

    Every engine that can load the tokenizer, on short, medium and long texts and on the corpus's own documents: one by
    one, batched, in threads, and read back from a memory map. SOURCE is what `headrace prepare` takes.

    \b
    headrace diagnose tokenization corpus.jsonl --tokens-per-second 50000
    """
    from headrace.diagnosis.tokenization import TokenizationConfig, diagnose_tokenization

    if source and dataset:
        raise UsageError(f"SOURCE {source} and --dataset {dataset}: one corpus is measured at a time. Leave one out.")
    config = TokenizationConfig(source=source or dataset or "python-stdlib", **settings)
    with measuring() as progress:
        report = diagnose_tokenization(config, progress)
    if not as_json:
        print_tables(report)
    show(report, as_json, html)


def print_tables(report: Report) -> None:
    console, found = out_console(), report.facts
    print_facts(console, list(_summary(found)))
    for table in (engine_table(found), length_table(found), document_table(found)):
        console.print()
        print_table(console, table)
    for note in found["notes"]:
        console.print(note, style="label", markup=False)
    console.print()


def _summary(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from headrace.files import human_bytes

    sample, corpus = found["sample"], found["corpus"]
    documents = f" in {corpus['documents']:,} documents" if corpus["documents"] is not None else ""
    text, tokens = corpus["text_bytes"], corpus["tokens"]
    size = f"{human_bytes(text['value'])} of text{documents}" if corpus["counted"] else (
        f"{human_bytes(corpus['input_bytes'])} in files, {_about(text, human_bytes)} of text"
    )  # fmt: skip
    yield "corpus", f"{found['source']}: {size}, {_about(tokens, amount)} tokens"
    yield (
        "sample",
        (
            f"{sample['documents']:,} documents, {human_bytes(sample['bytes'])}, from {sample['places']} places "
            f"(seed {sample['seed']})"
        ),
    )
    yield "tokenizer", f"{found['tokenizer']}, reference engine {found['reference']}"


def _about(estimate: dict[str, Any], show_value: Callable[[float], str]) -> str:
    value, high = estimate["value"], estimate["high"]
    if not value or high is None:
        return f"about {show_value(value)}"
    return f"{show_value(value)} ± {100 * (high - value) / value:.1f}%"


def engine_table(found: dict[str, Any]) -> Table:
    """Rates are those of batches of the corpus's documents."""
    from rich.text import Text

    table = plain_table("engine", "MB/s a core", "tokens/s a core", "load", "ids")
    for row in found["engines"]:
        if row["exact"] is None:
            table.add_row(row["engine"], "-", "-", "-", Text(row["unsupported"], style="label"))
            continue
        ids = "reference" if row["reference"] else "exact" if row["exact"] else f"differ on {row['mismatch']}"
        style = "" if row["exact"] else "bad"
        rates = f"{row['mb_per_s_core']:.1f}", f"{row['tokens_per_s_core']:,.0f}", f"{row['load_seconds']:.2f} s"
        table.add_row(row["engine"], *rates, Text(ids, style=style))
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    return table


def length_table(found: dict[str, Any]) -> Table:
    """Milliseconds a text, by the clock."""
    from headrace.files import human_bytes

    rows = found["timings"]
    ways = list(dict.fromkeys(row["way"] for row in rows))
    table = plain_table("ms a text", "text", *(HEADS.get(way, way.replace(" threads", "\nthreads")) for way in ways))
    table.columns[1].justify = "left"
    engines = [name for name in dict.fromkeys(row["engine"] for row in rows) if name != "memory map"]
    lengths = list(dict.fromkeys(row["length"] for row in rows))
    by = {(row["engine"], row["length"], row["way"]): row for row in rows}
    for engine in engines:
        for length in lengths:
            ready = by["memory map", length, "prepared"]
            cells = [ready if way == "prepared" else by.get((engine, length, way)) for way in ways]
            label = f"{length} {human_bytes(ready['text_bytes'])}"
            shown = (milliseconds(cell["ms_per_text"]) if cell else "-" for cell in cells)
            table.add_row(engine if length == lengths[0] else "", label, *shown)
    return table


def document_table(found: dict[str, Any]) -> Table:
    """The corpus's own documents: per core, for the corpus, and of a step."""
    from headrace.diagnosis.tokenization_estimate import HOUR, Estimate
    from headrace.diagnosis.tokenization_findings import percent, said

    rates = list(dict.fromkeys(row["tokens_per_second"] for row in found["shares"]))
    epoch = "an epoch" if found["epochs"] == 1 else f"{found['epochs']:g} epochs"
    table = plain_table("documents", "", "tokens/s", epoch, *(f"step at\n{amount(rate)}/s" for rate in rates))
    table.columns[1].justify = "left"
    shares = {(row["engine"], row["way"], row["tokens_per_second"]): row["share"] for row in found["shares"]}
    for row in found["documents"]:
        key = row["engine"], row["way"]
        hours = Estimate(**row["seconds"]).times(found["epochs"] / HOUR)
        parts = (percent(shares[(*key, rate)]) for rate in rates)
        table.add_row(*key, amount(row["tokens_per_s_core"]), said(hours), *parts)
    return table


def milliseconds(value: float) -> str:
    """Three figures, down to microseconds."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:#.3g}" if value >= 0.01 else f"{value:.4f}"
