"""headrace verify"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import can_be_live, count, err_console, json_option, out_console, print_json
from headrace.cli.stopping import NOTHING_WRITTEN, stopping

if TYPE_CHECKING:
    from rich.console import Console

    from headrace.storage import TokenStore
    from headrace.storage.verify import VerifyReport

SAMPLE = 200


@click.command(short_help="Check every byte of a dataset against its manifest.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--tokens", is_flag=True, help="Also decode a sample and encode it again with the reference engine.")
@json_option
def verify(folder: Path, tokens: bool, as_json: bool) -> None:
    """Find any flipped bit, cut file, wrong count, missing shard, or id that is none. Exit code 1 if there is one."""
    import msgspec

    with stopping(NOTHING_WRITTEN):
        report, problems = find_problems(folder, tokens=tokens)
    if as_json:
        print_json({**msgspec.to_builtins(report), "problems": problems, "ok": not problems})
    elif not problems:
        show_whole(report)
    if problems:
        show_problems(folder, problems, err_console() if as_json else out_console())
        sys.exit(1)


def find_problems(folder: Path, *, tokens: bool) -> tuple[VerifyReport, list[str]]:
    from headrace.storage import TokenStore
    from headrace.storage import verify as check

    with _shard_bar(folder) as on_shard:
        report = check(folder, on_shard)
    problems = list(report.problems)
    if not problems:
        problems += check_plans(folder)
    if tokens and not problems:
        problems += check_tokens(TokenStore(folder))
    return report, problems


def show_whole(report: VerifyReport) -> None:
    from headrace.files import human_bytes

    counted = f"{report.tokens:,} tokens in {count(report.documents, 'document')}, {count(report.shards, 'shard')}"
    out_console().print(
        f"[done]Whole[/]: {counted}, {human_bytes(report.bytes)}: every checksum, count and id is right."
    )


def show_problems(folder: Path, problems: list[str], console: Console) -> None:
    from rich.text import Text

    wide = not console.is_terminal
    for problem in problems:
        console.print(Text.assemble(("bad ", "failed"), problem), soft_wrap=wide)
    again = "Write it again: headrace prepare ... --force"
    console.print(Text(f"{count(len(problems), 'problem')} in {folder}. {again}"), soft_wrap=wide)


def check_plans(folder: Path) -> list[str]:
    """A best-fit plan follows from the lengths alone: it is made again and compared."""
    import numpy as np

    from headrace.packing import best_fit, load_plan
    from headrace.storage import read_metadata, split_lengths

    metadata = read_metadata(folder)
    problems = []
    for split in ("train", "val") if metadata.packing == "best-fit" else ():
        lengths = split_lengths(folder, metadata, split)
        if not len(lengths):
            continue
        made, found = best_fit(lengths, metadata.chunk_size), load_plan(folder, metadata.chunk_size, split)
        if not (np.array_equal(made.pieces, found.pieces) and np.array_equal(made.offsets, found.offsets)):
            problems.append(f"bestfit-{split}-{metadata.chunk_size}: the plan is not the one that was written")
    return problems


def check_tokens(store: TokenStore) -> list[str]:
    """Decode documents spread over the dataset and encode them again with the reference."""
    reference = store.tokenizer.reference()
    problems = []
    for index in range(0, store.num_documents, max(1, store.num_documents // SAMPLE)):
        document = store.document(index)
        if store.metadata.config["eos"] and document[-1] != store.metadata.eos_token_id:
            continue  # the last document of --max-chunks is cut
        ids = _without_control_tokens(store, document)
        (again,) = reference.encode([store.decode(ids).encode()])
        if again.tolist() != ids.tolist():
            problems.append(f"document {index:,}: the reference engine encodes its text to other ids")
    return problems


def _without_control_tokens(store: TokenStore, ids: Any) -> Any:
    config, metadata = store.metadata.config, store.metadata
    if config["eos"] and len(ids) and ids[-1] == metadata.eos_token_id:
        ids = ids[:-1]
    if config["bos"] and len(ids) and ids[0] == metadata.bos_token_id:
        ids = ids[1:]
    return ids


@contextlib.contextmanager
def _shard_bar(folder: Path) -> Iterator[Callable[[Any], None]]:
    """On a terminal a bar that counts shards, gone when it is done; nothing elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from headrace.storage import read_metadata

    console = err_console()
    words = TextColumn("{task.description}", style="title")
    columns = (
        words,
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True, disable=not can_be_live(console)) as progress:
        bar = progress.add_task("Checking", total=len(read_metadata(folder).shards))
        yield lambda shard: progress.advance(bar)
