"""headrace diagnose training"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.diagnose_output import output_options, show


@click.command(short_help="A run of headrace train, from its events.")
@click.argument("run", type=click.Path(path_type=Path))
@output_options
def training(run: Path, as_json: bool, html: Path | None) -> None:
    """Say where the time of RUN went, a folder of headrace train, and what to change.

    Reads the run's events: the run may be over, or still going on.

    \b
    headrace diagnose training runs/my-run
    headrace diagnose training runs/my-run --html report.html
    headrace diagnose training runs/my-run --json > before.json
    """
    from headrace.diagnosis.training import diagnose_run_folder

    show(diagnose_run_folder(run), as_json, html)
