"""One way to give out a report: the tree or `--json` on stdout, `--html FILE`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from headrace.cli.messages import say_stopped
from headrace.cli.output import err_console, json_option, out_console, print_json
from headrace.cli.stopping import UNTIL_THEN, Stopped, how_to_go_on

if TYPE_CHECKING:
    from headrace.diagnosis.report import Report

Command = TypeVar("Command", bound=Callable[..., object])

html_option = click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report as one HTML file too.",
)


def output_options(command: Command) -> Command:
    """`--json` as `as_json`, `--html FILE` as `html`."""
    return json_option(html_option(command))


def show(report: Report, as_json: bool, html: Path | None) -> None:
    """The tree in colour on a terminal and plain in a pipe, or the whole report as JSON."""
    if html is not None:
        _write_page(report, html)
    if as_json:
        print_json(report)
        return
    from headrace.diagnosis.tree import PIPE_WIDTH, rich_tree

    console = out_console()
    width = console.width if console.is_terminal else PIPE_WIDTH
    console.print(rich_tree(report, width), soft_wrap=True)


def show_after_script(report: Report, as_json: bool, html: Path | None, code: int) -> None:
    """Below what a script has printed, of which the last line may be half a one; ends with its exit code."""
    console = out_console()
    if console.is_terminal and not as_json:
        console.print()
    show(report, as_json, html)
    if code == Stopped.exit_code:
        say_stopped(how_to_go_on(UNTIL_THEN))
    if code:
        raise SystemExit(code)


def _write_page(report: Report, html: Path) -> None:
    from rich.text import Text

    from headrace.diagnosis.page import page
    from headrace.errors import UsageError
    from headrace.files import write_atomically

    try:
        write_atomically(html, page(report).encode())
    except OSError as error:
        raise UsageError(f"--html {html}: this file cannot be written ({error.strerror}).") from error
    err_console().print(Text(f"Wrote {html}"), soft_wrap=True)
