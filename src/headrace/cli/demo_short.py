"""headrace demo --prepare-only: data and nothing else, without torch."""

from __future__ import annotations

from pathlib import Path

from headrace.cli.output import out_console
from headrace.errors import StoreError


def prepare_and_look(out: Path, *, as_json: bool) -> None:
    from headrace.cli.prepare import run
    from headrace.pipeline import PrepareConfig

    data = out / "data"
    config = PrepareConfig(source="python-stdlib", out=data, val_fraction=0.02, force=True)
    if as_json:
        run(config, as_json=True)
        check(data)
        return
    console = out_console()
    console.rule("[bold]1. Prepare[/]  headrace prepare python-stdlib --val-fraction 0.02", align="left")
    store = run(config)
    _look(store, data)
    console.print()
    console.rule(f"[bold]4. Check[/]  headrace verify {data}", align="left")
    console.print(f"[bold green]Whole[/]: {check(data):,} tokens, every byte checked")
    console.print("\n[bold]Next, on your own text:[/]")
    console.print("  headrace prepare my-texts/ --out data/mine --tokenizer headrace-32k", soft_wrap=True)
    console.print("  headrace train data/mine --test", soft_wrap=True)
    console.print("  python -c \"import headrace as hr; print(hr.TokenStore('data/mine')[0])\"", soft_wrap=True)


def _look(store: object, data: Path) -> None:
    from headrace.cli.inspect import show_chunk, show_statistics
    from headrace.storage import TokenStore

    assert isinstance(store, TokenStore)
    console = out_console()
    console.print()
    console.rule(f"[bold]2. Look[/]  headrace inspect {data}", align="left")
    show_statistics(store, as_json=False)
    console.print()
    console.rule(f"[bold]3. Read[/]  headrace inspect {data} --chunk 100 --chunk-size 128", align="left")
    store.chunk_size = 128
    show_chunk(store, 100, as_json=False)


def check(data: Path) -> int:
    """Tokens of a dataset of which every byte is as it was written."""
    from headrace.storage import verify

    report = verify(data)
    if not report.ok:
        raise StoreError(f"{data} is not what was written: {'; '.join(report.problems)}")
    return report.tokens
