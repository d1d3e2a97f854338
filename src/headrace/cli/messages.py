"""Errors and other last words on stderr: folded between words on a terminal, as they are anywhere else."""

from __future__ import annotations

import os
import re
import sys
import textwrap

import click

LEAST_WIDTH = 20
COMMAND = re.compile(r"(.+:) (headrace \S.*)")


def say_error(message: str) -> None:
    _say("error:", "red", message)


def say_warning(message: str) -> None:
    _say("warning:", "yellow", message)


def _say(word: str, colour: str, message: str) -> None:
    click.echo(click.style(word, fg=colour, bold=True) if _coloured() else word, err=True, nl=False)
    click.echo(f" {_for_stderr(message, len(word) + 1)}", err=True)


def say_stopped(message: str) -> None:
    """Not an error. The terminal has written ^C, perhaps behind half a line: that line goes."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[2K" if _has_codes() else "\n", err=True, nl=False)
    click.echo(_for_stderr(message), err=True)


def _coloured() -> bool:
    """As rich decides it, which need not be imported for this."""
    return sys.stderr.isatty() and _has_codes() and not os.environ.get("NO_COLOR")


def _has_codes() -> bool:
    return os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def _for_stderr(message: str, used: int = 0) -> str:
    if not sys.stderr.isatty():
        return message
    return folded(message, os.get_terminal_size(sys.stderr.fileno()).columns or 80, used)


def folded(message: str, width: int, used: int = 0) -> str:
    """Lines of the width, the first of which has less room. A command at the end of one can still be copied whole."""
    first, *others = message.split("\n")
    lines = [*_fold(first, width, " " * used, ""), *(part for line in others for part in _fold_indented(line, width))]
    return "\n".join(lines)[used:]


def _fold_indented(line: str, width: int) -> list[str]:
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    return _fold(text, width, indent, indent)


def _fold(line: str, width: int, indent: str, hanging: str) -> list[str]:
    found = COMMAND.fullmatch(line)
    if found and len(indent) + len(line) > width:
        return [*_fold(found[1], width, indent, hanging), f"{hanging}  {found[2]}"]
    return textwrap.wrap(
        line,
        max(width, LEAST_WIDTH),
        initial_indent=indent,
        subsequent_indent=hanging,
        break_on_hyphens=False,
        break_long_words=False,
        replace_whitespace=False,
    ) or [indent]
