"""headrace tokenizer train | check | bench"""

from __future__ import annotations

import shlex
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.measuring import measuring, told
from headrace.cli.output import json_option, out_console, print_facts, print_json, print_next
from headrace.cli.stopping import NOTHING_WRITTEN, stopping
from headrace.cli.tables import plain_table, print_table

if TYPE_CHECKING:
    from rich.text import Text

    from headrace.tokenizers import Tokenizer

DEFAULT_SOURCE = "python-stdlib"
TOLD_EVERY = 4_000_000  # bytes


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

    with measuring() as tell:
        tell(f"Comparing the engines of {name}")
        loaded = load_tokenizer(name)
        report = check_parity(loaded, take_texts(sources, megabytes))
    if as_json:
        print_json({**msgspec.to_builtins(report), "fastest": report.fastest, "special": loaded.special})
        return
    console = out_console()
    console.print(loaded.name, style="title", markup=False, soft_wrap=True)
    print_facts(console, _description(loaded, report.reference))
    console.print(f"\nCompared on {report.documents:,} texts, {report.sample_bytes / 1e6:.1f} MB:")
    print_facts(console, [_verdict(engine) for engine in report.engines])
    console.print(f"A run uses [number]{report.fastest}[/].")


def _description(loaded: Tokenizer, reference: str) -> list[tuple[str, str | Text]]:
    controls = loaded.control_texts()
    shown = ", ".join(controls[:8]) + (f", ... ({len(controls):,} in all)" if len(controls) > 8 else "")
    special = loaded.special
    return [
        ("kind", f"{loaded.kind}, reference engine {reference}"),
        ("ids", f"{loaded.vocab_size:,}"),
        ("special", f"EOS {special.eos}, BOS {special.bos}, PAD {special.pad}"),
        ("control", shown or "none"),
    ]


def _verdict(report: Any) -> tuple[str, str | Text]:
    from rich.text import Text

    if report.unsupported is not None:
        return report.engine, Text.assemble(("left out", "warn"), f": {report.unsupported}")
    if report.exact:
        return report.engine, Text.assemble(("exact", "good"), f", {report.mb_per_s:.0f} MB/s a core")
    return report.engine, Text.assemble(("differs", "bad"), f" on {report.mismatch.describe()}")


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
    with measuring() as tell:
        loaded = load_tokenizer(name)
        texts = take_texts(sources, megabytes)
        results, left_out = time_engines(loaded, texts, rounds, tell)
    if as_json:
        print_json({"tokenizer": loaded.name, "bytes": sum(map(len, texts)), "engines": results})
        return
    console, table = out_console(), plain_table("engine", "MB/s", "tokens/s", "bytes/token", "load")
    for row in results:
        columns = (f"{row['mb_per_s']:.1f}", f"{row['tokens_per_s']:,.0f}", f"{row['bytes_per_token']:.3f}")
        table.add_row(row["engine"], *columns, f"{row['load_seconds']:.2f} s")
    console.print(f"[title]{loaded.name}[/] [label]one core, cold[/]")
    print_table(console, table)
    for engine, why in left_out.items():
        console.print(f"{engine} is left out: {why}", style="label", markup=False)


def time_engines(
    loaded: Tokenizer, texts: Sequence[bytes], rounds: int, tell: Callable[[str], None]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Interleaved, so that a noisy moment hits all of them. Also the engines that cannot, and why."""
    from headrace.tokenizers import FAST_ENGINES, Unsupported

    engines = [*FAST_ENGINES, "reference"]
    timed: dict[str, list[tuple[float, float, int]]] = {engine: [] for engine in engines}
    left_out: dict[str, str] = {}
    for number in range(rounds):
        for engine in engines:
            tell(f"Round {number + 1} of {rounds}: {engine}")
            try:
                timed[engine].append(_time_once(loaded, engine, texts))
            except Unsupported as error:
                left_out[engine] = str(error)
    size = sum(map(len, texts))
    return [_row(loaded, engine, size, runs) for engine, runs in timed.items() if runs], left_out


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
    from rich.markup import escape

    from headrace.tokenizers import load_tokenizer
    from headrace.tokenizers.train import train_bpe

    texts = _all_texts(sources, text_field, None if megabytes is None else int(megabytes * 1e6))
    with stopping(NOTHING_WRITTEN), told("Learning ...") as tell:
        in_thread(lambda: train_bpe(
            _counted(texts, tell), out, vocab_size=vocab_size, pattern=pattern, control_tokens=control_token
        ))  # fmt: skip
    size = load_tokenizer(out).vocab_size
    if as_json:
        print_json({"path": str(out), "vocab_size": size})
        return
    console = out_console()
    console.print(f"[done]Trained[/] {escape(str(out))}: {size:,} ids", soft_wrap=True)
    print_next(console, "Use it", f"headrace prepare ... --tokenizer {shlex.quote(str(out))}")


def in_thread(work: Callable[[], object]) -> None:
    """The library learns without looking at signals: in a thread of its own Ctrl-C need not wait for it."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised again where somebody waits for it
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if failed:
        raise failed[0]


def _counted(texts: Iterator[bytes], tell: Callable[[str], None]) -> Iterator[bytes]:
    read, said = 0, 0
    for text in texts:
        yield text
        read += len(text)
        if read - said >= TOLD_EVERY:
            tell(f"Reading, {read / 1e6:,.0f} MB")
            said = read
    tell(f"Learning from {read / 1e6:,.1f} MB")


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
