"""headrace diagnose run"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headrace.cli.diagnose_output import output_options, show_after_script


@click.command(short_help="Any PyTorch script, unchanged: where its steps spend their time.",
               context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})  # fmt: skip
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep report.json and what each process wrote.")  # fmt: skip
@click.option("--warmup", type=click.IntRange(1), default=3, show_default=True, help="Steps that are left out.")
@output_options
def run(command: tuple[str, ...], out: Path | None, warmup: int, as_json: bool, html: Path | None) -> None:
    """Run a training script as it is, and say where every millisecond of its steps went.

    \b
    headrace diagnose run -- python train.py --lr 3e-4
    headrace diagnose run -- torchrun --nproc-per-node 2 train.py
    headrace diagnose run --json -- python train.py > before.json

    The script's output passes through, and the report follows it; with --json the script writes to stderr instead, so
    that stdout holds the report alone. The exit code is the script's.
    """
    from headrace.diagnosis.script import run_script

    code, report = run_script(command, out=out, warmup=warmup, stdout=sys.stderr if as_json else None)
    show_after_script(report, as_json, html, code)
