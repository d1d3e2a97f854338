"""`headrace`: finds the verb, and turns errors into messages and exit codes."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Any

import click

from headrace.cli.characters import allow_ascii
from headrace.cli.messages import say_error, say_stopped
from headrace.cli.stopping import Stopped, how_to_go_on
from headrace.errors import HeadraceError, Interrupted
from headrace.version import __version__

VERBS = {  # in the order in which a user meets them
    "demo": "headrace.cli.demo",
    "prepare": "headrace.cli.prepare",
    "plan": "headrace.cli.plan",
    "inspect": "headrace.cli.inspect",
    "verify": "headrace.cli.verify",
    "tokenizer": "headrace.cli.tokenizer",
    "train": "headrace.cli.train",
    "sample": "headrace.cli.sample",
    "export": "headrace.cli.export",
    "diagnose": "headrace.cli.diagnose",
    "dashboard": "headrace.cli.dashboard",
    "report": "headrace.cli.report",
}


class Verbs(click.Group):
    """Imports a verb's module only when it is needed; their heavy imports stay inside their functions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = VERBS.get(cmd_name)
        return getattr(import_module(module), cmd_name) if module else None


def underscores_too(name: str) -> str:
    """--chunk_size is --chunk-size."""
    return name.replace("_", "-")


@click.group(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": underscores_too}
)
@click.version_option(__version__, prog_name="headrace")
def cli() -> None:
    """Carry tokens to the GPU: text in, packed memory-mapped tokens out, ready for any PyTorch loop.

    \b
    headrace demo                               see it work, offline, in minutes
    headrace prepare corpus/*.jsonl --out data  tokenize and pack, once
    headrace plan --bytes 3TB --workers 512     or see first what it takes
    headrace inspect data                       look at the result
    headrace train data                         train a model on it
    headrace sample runs/NAME --prompt 'def '   let it write
    headrace diagnose training runs/NAME        see where its time went
    headrace dashboard                          watch runs and data in a browser
    headrace report runs/NAME --open            all about it on one page
    """


def main(args: list[str] | None = None) -> None:
    """Exit codes: 0 done, 1 failed, 2 usage, 3 data rejected, 75 stopped and resumable, 130 Ctrl-C."""
    allow_ascii()
    signal.signal(signal.SIGTERM, _on_terminate)
    try:
        cli(args, prog_name="headrace", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # click 8.2: a command was not named
            error.show()
            sys.exit(error.exit_code)
        _say_usage(error)
        _fail(error.format_message(), error.exit_code)
    except Interrupted as error:
        _stop(str(error), error.exit_code)
    except HeadraceError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _stop(how_to_go_on(), Stopped.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; saying so would fail too
        sys.exit(1)


def _say_usage(error: click.ClickException) -> None:
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(f"{context.get_usage()}\nTry: {context.command_path} --help\n", err=True)


def _fail(message: str, code: int) -> None:
    _print_json_error(message, code)
    say_error(message)
    sys.exit(code)


def _stop(message: str, code: int) -> None:
    _print_json_error(message, code)
    say_stopped(message)
    sys.exit(code)


def _print_json_error(message: str, code: int) -> None:
    """With --json a script always gets an object on stdout."""
    from headrace.cli.output import print_json, wants_json

    if wants_json():
        print_json({"error": message, "exit_code": code})


def _on_terminate(number: int, frame: FrameType | None) -> Any:
    raise Interrupted(how_to_go_on())
