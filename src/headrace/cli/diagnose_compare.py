"""headrace diagnose compare"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.output import json_option, out_console, print_json


@click.command(short_help="Two reports side by side: did the gain come true?")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@json_option
def compare(before: Path, after: Path, as_json: bool) -> None:
    """Put two reports side by side, as `--json` has written them, and say whether the predicted gain came true.

    \b
    headrace diagnose run --json -- python train.py > before.json
    (follow the first advice)
    headrace diagnose run --json -- python train.py > after.json
    headrace diagnose compare before.json after.json
    """
    from headrace.diagnosis.compare import compare_reports, rich_comparison
    from headrace.diagnosis.report import load_report
    from headrace.diagnosis.tree import PIPE_WIDTH

    found = compare_reports(load_report(before), load_report(after))
    if as_json:
        print_json(found)
        return
    console = out_console()
    width = console.width if console.is_terminal else PIPE_WIDTH
    console.print(rich_comparison(found, width), soft_wrap=True)
