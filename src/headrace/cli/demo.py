"""headrace demo"""

from __future__ import annotations

import time
from pathlib import Path

import click

from headrace.cli.output import json_option, print_json
from headrace.demo.plan import DemoConfig


@click.command(short_help="From nothing to two trained models in about two minutes, offline.")
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True)
@click.option("--seconds", type=float, default=DemoConfig.seconds, show_default=True,
              help="Time for training; the rest takes about 30 s.")  # fmt: skip
@click.option("--prepare-only", is_flag=True, help="Prepare, look and check; needs no torch.")
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
@json_option
def demo(out: Path, seconds: float, prepare_only: bool, no_open: bool, as_json: bool) -> None:
    """Prepare the running Python's own source, train a transformer and a TEN on it, and see where the time goes.

    First a script trains the slow way that many guides show, then Headrace trains the same model the fast way. Both are
    diagnosed, and a page with all that was measured is written. A second demo in the same folder starts over.
    """
    began = time.perf_counter()
    if prepare_only:
        from headrace.cli.demo_short import prepare_and_look

        prepare_and_look(out, as_json=as_json)
        return
    from headrace.cli.demo_screen import TerminalScreen, need_torch

    need_torch()
    from headrace.cli.demo_summary import open_page, show_summary
    from headrace.demo.story import tell

    config = DemoConfig(out=out, seconds=seconds)
    found = tell(config, TerminalScreen(quiet=as_json), began)
    if as_json:
        print_json(found)
        return
    show_summary(found)
    if not no_open:
        open_page(Path(found.page))
