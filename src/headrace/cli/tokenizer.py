"""headrace tokenizer train | check | bench"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import err_console, facts, json_option, out_console, print_json

if TYPE_CHECKING:
    from headrace.tokenizers import Tokenizer

DEFAULT_SOURCE = "python-stdlib"


@click.group(short_help="Train, check and time tokenizers.")
def tokenizer() -> None:
    """Train a tokenizer, check the fast engines against the reference, measure speed."""


@tokenizer.command(short_help="Compare the fast engines with the reference, id by id.")
@click.argument("name", default="headrace-32k")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--megabytes", type=float, default=2.0, show_default=True, help="How much of SOURCE to compare.")
@json_option
def check(name: str, sources: tuple[str, ...], megabytes: float, as_json: bool) -> None:
    """Load the tokenizer NAME and compare every engine with the reference on SOURCE and on a set of nasty strings."""
    import msgspec

    from headrace.tokenizers import check_parity, load_tokenizer

    loaded = load_tokenizer(name)
    report = check_parity(loaded, take_texts(sources, megabytes))
    if as_json:
        print_json({**msgspec.to_builtins(report), "fastest": report.fastest, "special": loaded.special})
        return
    console = out_console()
    console.print(f"[bold]{loaded.name}[/]")
    console.print(facts(_description(loaded, report.reference)))
    console.print(f"\nCompared on {report.documents:,} texts, {report.sample_bytes / 1e6:.1f} MB:")
    for engine in report.engines:
        console.print(_verdict(engine), soft_wrap=True)
    console.print(f"A run uses [bold]{report.fastest}[/].")


def _description(loaded: Tokenizer, reference: str) -> list[tuple[str, str]]:
    controls = loaded.control_texts()
    shown = ", ".join(controls[:8]) + (f", ... ({len(controls):,} in all)" if len(controls) > 8 else "")
    special = loaded.special
    return [
        ("kind", f"{loaded.kind}, reference engine {reference}"),
        ("ids", f"{loaded.vocab_size:,}"),
        ("special", f"EOS {special.eos}, BOS {special.bos}, PAD {special.pad}"),
        ("control", shown or "none"),
    ]


def _verdict(report: Any) -> str:
    from rich.markup import escape

    if report.unsupported is not None:
        return f"  [yellow]-[/] {report.engine}: {escape(report.unsupported)}"
    if report.exact:
        return f"  [green]exact[/] {report.engine}, {report.mb_per_s:.0f} MB/s a core"
    return f"  [red]differs[/] {report.engine} on {escape(report.mismatch.describe())}"


@tokenizer.command(short_help="Speed of every engine, and bytes per token.")
@click.argument("name", default="headrace-32k")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--megabytes", type=float, default=8.0, show_default=True, help="How much of SOURCE to encode.")
@click.option("--rounds", type=int, default=3, show_default=True, help="Interleaved rounds; the median counts.")
@json_option
def bench(name: str, sources: tuple[str, ...], megabytes: float, rounds: int, as_json: bool) -> None:
    """Time each engine on the same text, one core, each round with a freshly loaded engine."""
    from headrace.tokenizers import load_tokenizer
    from headrace.tokenizers.fast import one_thread_each

    one_thread_each()
    loaded = load_tokenizer(name)
    texts = take_texts(sources, megabytes)
    results = time_engines(loaded, texts, rounds)
    if as_json:
        print_json({"tokenizer": loaded.name, "bytes": sum(map(len, texts)), "engines": results})
        return
    from rich.table import Table

    table = Table("engine", "MB/s", "tokens/s", "bytes/token", "load s", title=f"{loaded.name}, one core, cold")
    for row in results:
        columns = (f"{row['mb_per_s']:.1f}", f"{row['tokens_per_s']:,.0f}", f"{row['bytes_per_token']:.3f}")
        table.add_row(row["engine"], *columns, f"{row['load_seconds']:.2f}")
    out_console().print(table)


def time_engines(loaded: Tokenizer, texts: Sequence[bytes], rounds: int) -> list[dict[str, Any]]:
    """Interleaved, so that a noisy moment hits all of them."""
    from headrace.tokenizers import FAST_ENGINES, Unsupported

    engines = [*FAST_ENGINES, "reference"]
    timed: dict[str, list[tuple[float, float, int]]] = {engine: [] for engine in engines}
    console = err_console()
    for number in range(rounds):
        for engine in engines:
            if console.is_terminal:
                console.print(f"round {number + 1} of {rounds}: {engine} ...", end="\r")
            try:
                timed[engine].append(_time_once(loaded, engine, texts))
            except Unsupported as error:
                if number == 0:
                    console.print(f"{engine} is left out: {error}")
    size = sum(map(len, texts))
    return [_row(loaded, engine, size, runs) for engine, runs in timed.items() if runs]


def _time_once(loaded: Tokenizer, engine: str, texts: Sequence[bytes]) -> tuple[float, float, int]:
    from headrace.tokenizers import FAST_ENGINES

    started = time.perf_counter()
    opened = loaded.fast(engine) if engine in FAST_ENGINES else loaded.reference()  # cold: not the one loaded before
    ready = time.perf_counter()
    count = sum(len(row) for i in range(0, len(texts), 256) for row in opened.encode(texts[i : i + 256]))
    return ready - started, time.perf_counter() - ready, count


def _row(loaded: Tokenizer, engine: str, size: int, runs: list[tuple[float, float, int]]) -> dict[str, Any]:
    seconds = statistics.median(run[1] for run in runs)
    tokens = runs[0][2]
    return {
        "engine": loaded.reference().name if engine == "reference" else engine,
        "mb_per_s": round(size / 1e6 / seconds, 2),
        "tokens_per_s": round(tokens / seconds),
        "bytes_per_token": round(size / max(tokens, 1), 4),
        "load_seconds": round(statistics.median(run[0] for run in runs), 3),
    }


@tokenizer.command(short_help="Train a byte-level BPE tokenizer on any source.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("tokenizer.json"), show_default=True)
@click.option("--vocab-size", type=int, default=32_768, show_default=True)
@click.option("--pattern", default="o200k_base", show_default=True, help="Split pattern: o200k_base or cl100k_base.")
@click.option("--control-token", multiple=True, default=("<|endoftext|>",), show_default=True)
@click.option("--text-field", help="JSON key or column.")
@click.option("--megabytes", type=float, help="Train on so much text at most.")
@json_option
def train(
    sources: tuple[str, ...],
    out: Path,
    vocab_size: int,
    pattern: str,
    control_token: tuple[str, ...],
    text_field: str | None,
    megabytes: float | None,
    as_json: bool,
) -> None:
    """Learn a vocabulary from SOURCE and write a Hugging Face tokenizer.json."""
    from headrace.tokenizers import load_tokenizer
    from headrace.tokenizers.train import train_bpe

    texts = _all_texts(sources, text_field, None if megabytes is None else int(megabytes * 1e6))
    progress = err_console().is_terminal and not as_json
    train_bpe(texts, out, vocab_size=vocab_size, pattern=pattern, control_tokens=control_token, show_progress=progress)
    size = load_tokenizer(out).vocab_size
    if as_json:
        print_json({"path": str(out), "vocab_size": size})
    else:
        out_console().print(
            f"[bold green]Trained[/] {out}: {size:,} ids. Use it: headrace prepare ... --tokenizer {out}"
        )


def take_texts(sources: Sequence[str], megabytes: float) -> list[bytes]:
    """The first documents of each source, in equal shares."""
    wanted = list(sources) or [DEFAULT_SOURCE]
    share = int(megabytes * 1e6 / len(wanted))
    return [text for source in wanted for text in _all_texts([source], None, share)]


def _all_texts(sources: Sequence[str], text_field: str | None, limit: int | None) -> Iterator[bytes]:
    from headrace.sources import open_source, read_spans

    source = open_source(list(sources), text_field=text_field)
    total = 0
    for batch in read_spans(source.spans(8 << 20), source.options):
        for text in batch.texts:
            yield text
            total += len(text)
            if limit is not None and total >= limit:
                return
