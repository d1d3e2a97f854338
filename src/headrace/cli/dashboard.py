"""headrace dashboard"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.messages import say_stopped, say_warning
from headrace.errors import Interrupted, UsageError


@click.command(short_help="Watch runs and data in a browser.")
@click.argument("runs", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--data", type=click.Path(path_type=Path), default=Path("data"), show_default=True, help="Datasets.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port.  [default: 8765, or the next free one]")
@click.option("--open", "open_it", is_flag=True, help="Open the page in a browser.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another name that this machine goes by. Repeatable.")
def dashboard(runs: Path, data: Path, host: str, port: int | None, open_it: bool, allow_host: tuple[str, ...]) -> None:
    """Show all runs in the folder RUNS, and the datasets in --data, on a page that follows them.

    Nothing is written, and nothing is loaded from elsewhere. Only this machine can see the page, unless --host says
    otherwise.

    \b
    headrace dashboard
    headrace dashboard runs/sweep --data /mnt/tokens --open
    ssh -L 8765:127.0.0.1:8765 HOST headrace dashboard   watch another machine
    """
    from headrace.dashboard.serve import address_of, check_installed, names_of, open_browser, open_port, serve

    check_installed()
    for folder, named in ((runs, "RUNS"), (data, "--data")):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{named} {folder} is a file. Name a folder, such as {folder.parent}.")
    listening = open_port(host, port)
    address = address_of(host, listening)
    _introduce(runs, data, host, address)

    def ready() -> None:
        if open_it:
            open_browser(address, lambda words: click.echo(words, err=True))

    try:
        serve(runs, data, listening, hosts=[*names_of(host), *allow_host], ready=ready)
    except (KeyboardInterrupt, Interrupted):  # how a server is ended
        pass
    say_stopped("Stopped.")


def _introduce(runs: Path, data: Path, host: str, address: str) -> None:
    from headrace.dashboard.serve import is_loopback

    click.echo(f"Dashboard at {address}")
    for folder, named in ((runs, "Runs"), (data, "Data")):
        missing = "" if folder.exists() else "   (does not exist yet; what comes there will show)"
        click.echo(f"  {named}  {folder}{missing}")
    click.echo("Ctrl-C ends it.")
    if not is_loopback(host):
        say_warning(
            f"--host {host} lets everybody on the network read these runs and data; there is no password. "
            f"From one machine to another, `ssh -L 8765:127.0.0.1:8765 MACHINE` shows them to nobody else."
        )
