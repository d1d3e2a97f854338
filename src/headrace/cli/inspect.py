"""headrace inspect"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import (
    count,
    json_option,
    out_console,
    print_facts,
    print_json,
    print_next,
    print_text,
    visible,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headrace.storage import TokenStore

PERCENTILES = (1, 10, 50, 90, 99)
BAR = 40


@click.command(short_help="Statistics, a histogram of lengths, and any chunk as text.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--chunk", type=int, help="Show chunk N as text, with document boundaries.")
@click.option("--document", type=int, help="Show document N as text.")
@click.option("--chunk-size", type=int, help="Look at the same tokens in chunks of another size.")
@click.option("--split", type=click.Choice(["train", "val"]), default="train", show_default=True)
@json_option
def inspect(
    folder: Path, chunk: int | None, document: int | None, chunk_size: int | None, split: str, as_json: bool
) -> None:
    """Show what a prepared dataset holds."""
    from headrace.errors import UsageError
    from headrace.storage import TokenStore

    store = TokenStore(folder, split=split, chunk_size=chunk_size)
    try:
        if chunk is not None:
            show_chunk(store, chunk, as_json=as_json)
        elif document is not None:
            show_document(store, document, as_json=as_json)
        else:
            show_statistics(store, as_json=as_json)
    except IndexError as error:
        raise UsageError(
            f"There is no {error} in {folder}. Numbers begin at 0; negative ones count from the end."
        ) from error


def show_statistics(store: TokenStore, *, as_json: bool) -> None:
    statistics = gather(store)
    if as_json:
        print_json(statistics)
        return
    from headrace.files import human_bytes

    metadata, console = store.metadata, out_console()
    tail = statistics["tail_tokens"]
    percentiles = "  ".join(f"{name} {value:,}" for name, value in statistics["length_percentiles"].items())
    rows: list[tuple[str, str | Text]] = [
        ("tokens", f"{store.total_tokens:,} ({store.split}), {metadata.dtype}, {human_bytes(statistics['bytes'])}"),
        ("chunks", f"{store.num_chunks:,} of {store.chunk_size:,} tokens, {count(tail, 'token')} left over"),
        ("documents", f"{store.num_documents:,}, mean {statistics['mean_length']:,.0f} tokens"),
        ("lengths", percentiles),
        ("tokenizer", f"{metadata.tokenizer.name} ({metadata.tokenizer.kind}, {metadata.vocab_size:,} ids)"),
        ("bytes/token", f"{statistics['bytes_per_token']:.3f}"),
        ("set aside", f"{metadata.val_tokens:,} tokens in {count(metadata.val_documents, 'document')} (--split val)"),
        ("rejected", count(metadata.rejects, "record")),
        ("sources", _sources(store)),
    ]
    console.print(str(store.path), style="title", markup=False, soft_wrap=True)
    print_facts(console, rows)
    console.print("\n[title]Document lengths[/] [label](tokens)[/]")
    console.print(histogram_table(statistics["length_histogram"]))
    print_next(console, "See the text", f"headrace inspect {shlex.quote(str(store.path))} --chunk 0")


def gather(store: TokenStore) -> dict[str, Any]:
    import numpy as np

    lengths, metadata = store.document_lengths(), store.metadata
    percentiles = np.percentile(lengths, PERCENTILES).astype(int).tolist() if len(lengths) else [0] * len(PERCENTILES)
    return {
        "path": str(store.path),
        "split": store.split,
        "total_tokens": store.total_tokens,
        "documents": store.num_documents,
        "chunk_size": store.chunk_size,
        "num_chunks": store.num_chunks,
        "tail_tokens": store.total_tokens - store.num_chunks * store.chunk_size,
        "mean_length": float(lengths.mean()) if len(lengths) else 0.0,
        "longest": int(lengths.max()) if len(lengths) else 0,
        "length_percentiles": {f"p{p}": value for p, value in zip(PERCENTILES, percentiles, strict=True)},
        "length_histogram": histogram(lengths),
        "bytes": sum(shard.bytes for shard in store.shards),
        "bytes_per_token": metadata.text_bytes / max(metadata.total_tokens + metadata.val_tokens, 1),
        "vocab_size": metadata.vocab_size,
        "dtype": metadata.dtype,
        "tokenizer": metadata.tokenizer.name,
        "val_tokens": metadata.val_tokens,
        "val_documents": metadata.val_documents,
        "rejects": metadata.rejects,
        "shards": len(store.shards),
    }


def histogram(lengths: Any) -> list[dict[str, int]]:
    """Documents by length in powers of two: [from, below)."""
    import numpy as np

    if not len(lengths):
        return []
    powers = np.floor(np.log2(np.maximum(lengths, 1))).astype(int)
    counts = np.bincount(powers)
    first = int(np.argmax(counts > 0))
    return [{"from": 1 << p, "below": 2 << p, "documents": int(counts[p])} for p in range(first, len(counts))]


def histogram_table(rows: list[dict[str, int]]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="label", no_wrap=True)
    table.add_column(style="curve", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    most = max((row["documents"] for row in rows), default=1)
    for row in rows:
        table.add_row(f"{row['from']:,}-{row['below'] - 1:,}", bar(row["documents"] / most), f"{row['documents']:,}")
    return table


def bar(share: float) -> str:
    """A bar in eighths of a character."""
    eighths = round(share * BAR * 8)
    whole, rest = divmod(max(eighths, 1 if share else 0), 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def show_chunk(store: TokenStore, index: int, *, as_json: bool) -> None:
    index = index + store.num_chunks if index < 0 else index
    ids = store.chunk(index)
    start = index * store.chunk_size
    cuts = [int(cut) for cut in store.document_starts(start, start + len(ids))]
    pieces = [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)], strict=True)]
    texts = [store.decode(piece) for piece in pieces if len(piece)]
    if as_json:
        print_json({"chunk": index, "tokens": ids.tolist(), "document_starts": cuts, "pieces": texts})
        return
    console = out_console()
    console.print(f"[title]Chunk {index:,}[/] of {store.num_chunks:,}: {len(ids):,} tokens, {begin(len(cuts))} in it")
    _print_pieces(console, texts, continued=not cuts or cuts[0] > 0)


def show_document(store: TokenStore, index: int, *, as_json: bool) -> None:
    ids = store.document(index)
    text = store.decode(ids)
    if as_json:
        print_json({"document": index, "tokens": ids.tolist(), "text": text})
        return
    console = out_console()
    console.print(f"[title]Document {index:,}[/] of {store.num_documents:,}: {len(ids):,} tokens")
    _print_pieces(console, [text], continued=False)


def begin(documents: int) -> str:
    return f"{count(documents, 'document')} {'begins' if documents == 1 else 'begin'}"


def _print_pieces(console: Console, texts: list[str], *, continued: bool) -> None:
    from rich.rule import Rule

    for number, text in enumerate(texts):
        title = "a document goes on" if continued and number == 0 else "a document begins"
        console.print(Rule(title, align="left"))
        print_text(console, visible(text))
    console.print(Rule())


def _sources(store: TokenStore) -> str:
    from headrace.files import human_bytes

    sources = store.metadata.sources
    names = ", ".join(Path(source.path).name for source in sources[:3])
    more = f" and {len(sources) - 3:,} more" if len(sources) > 3 else ""
    return f"{names}{more}, {human_bytes(sum(source.size for source in sources))}"
