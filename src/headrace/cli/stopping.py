"""What a person reads who stops a command: what is kept, and the command that goes on."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator

from headrace.errors import Interrupted

LONGEST = 160  # characters of a command that is said in full; a shell may have made it of a thousand files
NOTHING_LOST = "Nothing that was finished is lost."
NOTHING_WRITTEN = "Nothing was written."
UNTIL_THEN = "The report is about the steps until then."


class Stopped(Interrupted):
    """By Ctrl-C, which has an exit code of its own."""

    exit_code = 130


@contextlib.contextmanager
def stopping(kept: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM in it are said as one line that begins with what became of the work."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(how_to_go_on(kept)) from None
    except Interrupted as error:
        if type(error) is not Interrupted:
            raise
        raise Interrupted(how_to_go_on(kept)) from None


@contextlib.contextmanager
def noticing() -> Iterator[list[int]]:
    """Ctrl-C in it is only noted, because a script that the terminal stops as well has something to say yet."""
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def how_to_go_on(kept: str = NOTHING_LOST) -> str:
    """Stopped. Nothing was written. To go on, run the same command again: headrace verify data"""
    command = shlex.join(["headrace", *sys.argv[1:]])
    again = f": {command}" if len(command) <= LONGEST and command.isprintable() else "."
    return f"Stopped. {kept} To go on, run the same command again{again}"
