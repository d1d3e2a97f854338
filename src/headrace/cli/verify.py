"""headrace verify"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import err_console, json_option, out_console, print_json

if TYPE_CHECKING:
    from headrace.storage import TokenStore

SAMPLE = 200


@click.command(short_help="Check every byte of a dataset against its manifest.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--tokens", is_flag=True, help="Also decode a sample and encode it again with the reference engine.")
@json_option
def verify(folder: Path, tokens: bool, as_json: bool) -> None:
    """Find any flipped bit, cut file, wrong count, missing shard, or id that is none. Exit code 1 if there is one."""
    import msgspec

    from headrace.files import human_bytes
    from headrace.storage import TokenStore
    from headrace.storage import verify as check

    with _shard_bar(folder) as on_shard:
        report = check(folder, on_shard)
    problems = list(report.problems)
    if not problems:
        problems += check_plans(folder)
    if tokens and not problems:
        problems += check_tokens(TokenStore(folder))
    if as_json:
        print_json({**msgspec.to_builtins(report), "problems": problems, "ok": not problems})
    console = out_console() if not as_json else err_console()
    for problem in problems:
        console.print(f"[bold red]bad[/] {problem}", soft_wrap=True)
    if problems:
        console.print(
            f"{len(problems)} problems in {folder}. Write it again: headrace prepare ... --force", soft_wrap=True
        )
        sys.exit(1)
    if not as_json:
        console.print(
            f"[bold green]Whole[/]: {report.tokens:,} tokens in {report.documents:,} documents, {report.shards} "
            f"shards, {human_bytes(report.bytes)}: every checksum, count and id is right."
        )


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
    from rich.progress import MofNCompleteColumn, Progress

    from headrace.storage import read_metadata

    console = err_console()
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("Checking", total=len(read_metadata(folder).shards))
        yield lambda shard: progress.advance(bar)
