"""headrace report"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.output import json_option, out_console, print_json
from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.training.run_view import Run

NAME, TOGETHER = "report.html", "comparison.html"


@click.command(short_help="A run, or several, as one HTML file.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=f"Where to write.  [default: RUN/{NAME}, or {TOGETHER} for several]",
)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@json_option
def report(runs: tuple[Path, ...], out: Path | None, show: bool, as_json: bool) -> None:
    """Write a page about RUN, a folder of headrace train: curves, where the time went, texts, config.

    The run may be over or still going on. The file needs nothing else: no network, no script, no other file. Several
    runs are compared on one page.

    \b
    headrace report runs/my-run --open
    headrace report runs/small runs/large --out compare.html
    """
    from headrace.training.run_view import Run

    found = [Run(path) for path in runs]
    path = out or (runs[0] / NAME if len(runs) == 1 else Path(TOGETHER))
    _write(path, _page(found))
    if as_json:
        print_json({"report": str(path)})
    else:
        out_console().print(str(path), soft_wrap=True, markup=False)
    if show:
        _open(path)


def _page(runs: list[Run]) -> bytes:
    from headrace.dashboard.compare_page import compare_page
    from headrace.dashboard.run_page import run_page

    return (run_page(runs[0]) if len(runs) == 1 else compare_page(runs)).encode()


def _write(path: Path, page: bytes) -> None:
    from headrace.files import write_atomically

    try:
        write_atomically(path, page)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}). Name another file with --out FILE.") from error


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        click.echo(f"No browser could be opened. The page is {path}", err=True)
