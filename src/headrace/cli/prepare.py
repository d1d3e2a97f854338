"""headrace prepare"""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.chart import sparkline
from headrace.cli.output import amount, count, duration, json_option, out_console, print_facts, print_json, print_next
from headrace.cli.prepare_share import do_share, resolve_share
from headrace.cli.quantities import AMOUNT
from headrace.cli.stopping import stopping
from headrace.cli.theme import STAGES, phase_style
from headrace.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from headrace.cli.live import PlainProgress
    from headrace.pipeline import PrepareConfig, Progress
    from headrace.storage import TokenStore


@click.command(short_help="Turn text into packed, memory-mapped tokens, once.")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--dataset", multiple=True, help="A catalogue name; the same as a SOURCE.")
@click.option("-o", "--out", "--output", type=click.Path(), help="Dataset folder.  [default: data/NAME]")
@click.option("-t", "--tokenizer", default="headrace-32k", show_default=True, help="Name, file, folder or hub id.")
@click.option("--chunk-size", type=int, default=2048, show_default=True, help="Tokens per chunk; a view, not a format.")
@click.option("-j", "--workers", "--num-proc", "--num-workers", type=int, help="Processes.  [default: one per core]")
@click.option("--text-field", help="JSON key or column.  [default: text, content, article, ...]")
@click.option("--split", help="Split of a catalogue or hub dataset.  [default: train]")
@click.option("--revision", help="Revision of a hub dataset; pinned into the metadata.")
@click.option("--separator", help="What divides documents in text files.  [default: a file is a document]")
@click.option("--val-fraction", type=float, default=0.0, show_default=True, help="Share of documents to set aside.")
@click.option("--val-seed", type=int, default=0, show_default=True, help="Which documents those are.")
@click.option("--max-chunks", type=int, help="Stop after so many chunks.")
@click.option("--max-reject-rate", type=float, default=0.001, show_default=True, help="Share of bad records allowed.")
@click.option("--keep-damaged", is_flag=True, help="Keep what precedes the damage in a cut or corrupt file.")
@click.option("--eos/--no-eos", default=True, help="End each document with the EOS token.  [default: yes]")
@click.option("--bos", is_flag=True, help="Begin each document with the BOS token.")
@click.option("--eos-token", help="Another token to end documents with.")
@click.option("--dtype", type=click.Choice(["auto", "uint16", "int32"]), default="auto", show_default=True)
@click.option("--packing", type=click.Choice(["concat", "best-fit"]), default="concat", show_default=True)
@click.option("--engine", type=click.Choice(["auto", "reference", "gigatoken", "fastokens", "ray"]), default="auto",
              show_default=True, help="What tokenizes; 'ray' is '--on ray'.")  # fmt: skip
@click.option("--verify", type=click.Choice(["sample", "full", "none"]), default="sample", show_default=True,
              help="How many documents the reference engine checks during the run.")  # fmt: skip
@click.option("--batch-size", type=int, help="Documents per tokenizer call.  [default: by bytes]")
@click.option("--task-bytes", type=int, help="Input bytes per task.  [default: 8 MiB to 256 MiB]")
@click.option("--sha256", is_flag=True, help="Also write a sha256 of each shard.")
@click.option("--task-index", type=int, help="Do this share of the tasks, from 0.  [default: of the array job]")
@click.option("--task-count", type=int, help="Number of shares, each done by a job of its own.")
@click.option("--finish", is_flag=True, help="Write the manifest when all shares are done.")
@click.option("--on", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="Where it runs.")
@click.option("--ray-address", default="auto", show_default=True, help="HOST:PORT of the Ray cluster.")
@click.option("--cpus-per-task", type=int, default=1, show_default=True, help="What Ray sets aside for a task.")
@click.option("--memory-per-task", type=AMOUNT, help="The same of memory, for example 4GB.")
@click.option("--force", is_flag=True, help="Start over; deletes only what Headrace made.")
@click.option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@json_option
def prepare(sources: tuple[str, ...], dataset: tuple[str, ...], as_json: bool, dry_run: bool, **settings: Any) -> None:
    """Tokenize SOURCE once and save it so that it opens instantly by memory map.

    SOURCE is a file, glob, folder or hf:// URL (.jsonl .json .parquet .arrow .txt .md .py, also .gz .zst .bz2 .xz), or
    a catalogue name: slimpajama, finewebedu, wikitext-103, tinystories, openwebtext, python-stdlib.

    Stop it at any moment; the same command goes on where it was, and the result is the same to the byte.
    """
    from headrace.pipeline import PrepareConfig

    wanted = [*sources, *dataset]
    if not wanted:
        raise UsageError("No SOURCE given. Name a file, folder or dataset, for example: headrace prepare python-stdlib")
    settings["out"] = settings["out"] or default_folder(wanted[0])
    if settings["engine"] == "ray":
        settings.update(engine="auto", on="ray")
    if settings["task_index"] is not None or settings["task_count"] is not None:
        resolve_share(settings)
    config = PrepareConfig(source=wanted, **settings)
    if dry_run:
        show_plan(config, as_json=as_json)
    elif config.task_index is not None:
        do_share(config, as_json=as_json)
    else:
        run(config, as_json=as_json)


def default_folder(source: str) -> str:
    """data/NAME after the first source."""
    name = re.sub(r"[*?\[\]].*", "", source).rstrip("/.-_")
    stem = Path(name).name.split(".")[0] or "dataset"
    return str(Path("data") / stem)


def run(config: PrepareConfig, *, as_json: bool = False) -> TokenStore:
    from headrace.cli.live import show_progress
    from headrace.pipeline import run_prepare

    started = time.perf_counter()
    kept = f"What is finished is kept in {config.out}."
    with stopping(kept), show_progress(f"Preparing {config.out}") as live:
        store = run_prepare(config, live)
    seconds = time.perf_counter() - started
    if as_json:
        print_json(summary(store, seconds, live.last))
    else:
        show_result(store, seconds, live)
    return store


def summary(store: TokenStore, seconds: float, last: Progress | None) -> dict[str, Any]:
    metadata = store.metadata
    return {
        "path": str(store.path),
        "total_tokens": metadata.total_tokens,
        "documents": metadata.documents,
        "num_chunks": metadata.num_chunks,
        "chunk_size": metadata.chunk_size,
        "val_tokens": metadata.val_tokens,
        "val_documents": metadata.val_documents,
        "text_bytes": metadata.text_bytes,
        "rejects": metadata.rejects,
        "shards": len(metadata.shards),
        "dtype": metadata.dtype,
        "tokenizer": metadata.tokenizer.name,
        "seconds": round(seconds, 3),
        "text_mb_per_s": round(last.text_mb_per_s, 2) if last else None,
        "tokens_per_s": round(last.tokens_per_s) if last else None,
        "stage_shares": {name: round(share, 4) for name, share in last.stage_shares.items()} if last else None,
        "verified_documents": last.counts.verified if last else None,
    }


def show_result(store: TokenStore, seconds: float, live: PlainProgress) -> None:
    from rich.text import Text

    console = out_console()
    console.print(Text.assemble(("Prepared ", "done"), str(store.path)), soft_wrap=True)
    print_facts(console, [*_contents(store), *_speed(seconds, live), *_rejected(store)])
    print_next(console, "Look at it", f"headrace inspect {shlex.quote(str(store.path))}")


def _contents(store: TokenStore) -> list[tuple[str, str | Text]]:
    from headrace.files import human_bytes

    metadata = store.metadata
    val = f", {amount(metadata.val_tokens)} in {count(metadata.val_documents, 'document')} set aside"
    size = human_bytes(sum(shard.bytes for shard in metadata.shards))
    return [
        (
            "tokens",
            f"{metadata.total_tokens:,} in {count(metadata.documents, 'document')}{val if metadata.val_tokens else ''}",
        ),
        ("chunks", f"{metadata.num_chunks:,} of {metadata.chunk_size:,} tokens, {_packing(store)}"),
        ("text", f"{human_bytes(metadata.text_bytes)}, {bytes_per_token(store):.2f} bytes per token"),
        ("on disk", f"{size} in {count(len(metadata.shards), 'shard')}, {metadata.dtype}"),
    ]


def _speed(seconds: float, live: PlainProgress) -> list[tuple[str, str | Text]]:
    """Nothing for a dataset that was there already."""
    from rich.text import Text

    last, course = live.last, sparkline(live.rates.values())
    if last is None:
        return []
    rate = Text.assemble(
        f"{duration(seconds)}, ",
        (f"{last.text_mb_per_s:.0f} MB/s", "rate"),
        f", {amount(last.tokens_per_s)} tokens/s",
        (f"   MB/s {course}", "curve") if course else "",
    )
    stages = Text(", ").join(
        Text(f"{name} {share:.0%}", style=phase_style(STAGES.get(name, name)))
        for name, share in last.stage_shares.items()
    )
    return [("time", rate), ("stages", stages)]


def _rejected(store: TokenStore) -> list[tuple[str, str | Text]]:
    rejects = store.metadata.rejects
    return [("rejected", f"{count(rejects, 'record')}, listed in {store.path / 'rejects.jsonl'}")] if rejects else []


def _packing(store: TokenStore) -> str:
    if store.metadata.packing == "concat":
        return "no padding"
    from headrace.packing import load_plan

    plan = load_plan(store.path, store.chunk_size)
    return f"or {plan.num_chunks:,} best-fit chunks, {plan.fill:.2%} full"


def bytes_per_token(store: TokenStore) -> float:
    metadata = store.metadata
    return metadata.text_bytes / max(metadata.total_tokens + metadata.val_tokens, 1)


def show_plan(config: PrepareConfig, *, as_json: bool) -> None:
    from headrace.files import human_bytes
    from headrace.pipeline import plan_for

    tokenizer, plan = plan_for(config)
    largest = max(task.size for task in plan.tasks)
    if as_json:
        print_json(
            {
                "out": str(config.folder),
                "files": len(plan.sources),
                "input_bytes": plan.total_bytes,
                "tasks": len(plan.tasks),
                "largest_task_bytes": largest,
                "workers": min(config.worker_count, len(plan.tasks)),
                "tokenizer": tokenizer.name,
                "vocab_size": tokenizer.vocab_size,
                "dtype": plan.dtype,
                "sources": plan.sources,
            }
        )
        return
    rows: list[tuple[str, str | Text]] = [
        ("into", str(config.folder)),
        ("input", f"{human_bytes(plan.total_bytes)} in {count(len(plan.sources), 'file')}"),
        ("tasks", f"{len(plan.tasks):,}, the largest {human_bytes(largest)}"),
        ("workers", str(min(config.worker_count, len(plan.tasks)))),
        ("tokenizer", f"{tokenizer.name} ({tokenizer.kind}, {tokenizer.vocab_size:,} ids, {plan.dtype})"),
        *(("file", f"{source.path}  {human_bytes(source.size)}") for source in plan.sources[:5]),
        *([("", f"... and {len(plan.sources) - 5:,} more")] if len(plan.sources) > 5 else []),
    ]
    console = out_console()
    console.print("[title]The plan[/] [label](nothing was written)[/]")
    print_facts(console, rows)
