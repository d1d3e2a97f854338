"""headrace diagnose sync"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.diagnose_output import output_options, show_after_script
from headrace.cli.stopping import NOTHING_WRITTEN, Stopped, how_to_go_on, noticing
from headrace.errors import HeadraceError


@click.command(
    short_help="GPU syncs and blocking copies of a script, with no GPU needed.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--steps", default=20, show_default=True, help="Optimizer steps to count; the script is stopped after them."
)
@output_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- python SCRIPT [ARGS]...")
def sync(command: tuple[str, ...], steps: int, as_json: bool, html: Path | None) -> None:
    """List every place where a CUDA training script makes the CPU wait for the GPU.

    Without a GPU the script runs with fake tensors: shapes are right, values are invented, no checkpoint is written.
    With one it runs in earnest under torch.cuda.set_sync_debug_mode.

    \b
    headrace diagnose sync -- python train.py --batch-size 8
    headrace diagnose sync --steps 50 -- python -m package.train
    """
    from headrace.diagnosis.sync import diagnose_sync

    with noticing() as stopped:
        try:
            report = diagnose_sync(list(command), steps=steps, quiet=as_json)
        except HeadraceError:
            if stopped:  # before there was a step
                raise Stopped(how_to_go_on(NOTHING_WRITTEN)) from None
            raise
    show_after_script(report, as_json, html, Stopped.exit_code if stopped else 0)
