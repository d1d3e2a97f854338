"""headrace demo"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.output import out_console
from headrace.errors import StoreError


@click.command(short_help="See it work: offline, on the Python library's own source.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("data/demo"), show_default=True)
def demo(out: Path) -> None:
    """Prepare the running Python's own source with the built-in tokenizer, look at it, and check every byte."""
    from headrace.cli.inspect import show_chunk, show_statistics
    from headrace.cli.prepare import run
    from headrace.pipeline import PrepareConfig
    from headrace.storage import verify

    console = out_console()
    console.rule("[bold]1. Prepare[/]  headrace prepare python-stdlib --val-fraction 0.02", align="left")
    store = run(PrepareConfig(source="python-stdlib", out=out, val_fraction=0.02, force=True))
    console.print()
    console.rule(f"[bold]2. Look[/]  headrace inspect {out}", align="left")
    show_statistics(store, as_json=False)
    console.print()
    console.rule(f"[bold]3. Read[/]  headrace inspect {out} --chunk 100 --chunk-size 128", align="left")
    store.chunk_size = 128
    show_chunk(store, 100, as_json=False)
    console.print()
    console.rule(f"[bold]4. Check[/]  headrace verify {out}", align="left")
    report = verify(out)
    if not report.ok:
        raise StoreError(f"{out} is not what was written: {'; '.join(report.problems)}")
    console.print(f"[bold green]Whole[/]: {report.tokens:,} tokens, every byte checked")
    console.print("\n[bold]Next, on your own text:[/]")
    console.print("  headrace prepare my-texts/ --out data/mine --tokenizer headrace-32k", soft_wrap=True)
    console.print("  headrace train data/mine --test", soft_wrap=True)
    console.print("  python -c \"import headrace as hr; print(hr.TokenStore('data/mine')[0])\"", soft_wrap=True)
