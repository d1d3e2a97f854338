"""A command on a real terminal of a given size, and what is on its screen afterwards."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SEQUENCE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|\][^\x07]*\x07|[()][A-Z0-9])")
LEFT_OUT = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CI", "COLORTERM", "TTY_COMPATIBLE")
PATIENCE = 60  # seconds
# Of a new session, so that Ctrl-C written to the terminal is a signal, as it is for a person.
OWNS_IT = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Shown:
    """What a terminal got. Lines are whole: one that the terminal would have to wrap is longer than it is wide."""

    def __init__(self, raw: str, code: int) -> None:
        self.raw, self.code = raw, code
        self.lines, self.cursor_visible, self.column = screen_of(raw)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def widest(self) -> int:
        return max(map(len, self.lines), default=0)

    @property
    def coloured(self) -> bool:
        """Colours; bold and dim are none."""
        found = (codes.split(";") for codes in re.findall(r"\x1b\[([0-9;]*)m", self.raw))
        return any(int(code or 0) >= 30 for codes in found for code in codes)


def screen_of(raw: str) -> tuple[list[str], bool, int]:
    """Lines without the blank ones at the end, whether the cursor is seen, and in which column it stands."""
    rows: list[list[str]] = [[]]
    row = column = at = 0
    visible = True
    while at < len(raw):
        found = SEQUENCE.match(raw, at)
        if found:
            at = found.end()
            row, column, visible = _moved(rows, row, column, visible, found[1] or "", found[2])
            continue
        char = raw[at]
        at += 1
        if char == "\n":
            row += 1
            if row == len(rows):
                rows.append([])
        elif char == "\r":
            column = 0
        elif char not in "\x07\x1b":
            rows[row] += [" "] * (column + 1 - len(rows[row]))
            rows[row][column] = char
            column += 1
    lines = ["".join(cells).rstrip() for cells in rows]
    while lines and not lines[-1]:
        lines.pop()
    return lines, visible, column


def _moved(
    rows: list[list[str]], row: int, column: int, visible: bool, codes: str, letter: str | None
) -> tuple[int, int, bool]:
    if letter == "A":
        row = max(0, row - int(codes or 1))
    elif letter == "K":
        rows[row] = [] if codes == "2" else rows[row][:column]
    elif letter in ("h", "l") and codes == "?25":
        visible = letter == "h"
    return row, column, visible


class Terminal:
    """A command that runs on a terminal."""

    def __init__(
        self,
        command: Sequence[object],
        *,
        columns: int = 80,
        rows: int = 24,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        mine, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        known = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        self._mine, self._raw = mine, b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNS_IT, *map(str, command)],
            stdin=its,
            stdout=its,
            stderr=its,
            cwd=cwd,
            env={**known, "TERM": "xterm-256color", **(environment or {})},
            start_new_session=True,
        )
        os.close(its)

    def wait_for(self, words: str) -> None:
        """Until these words were written."""
        while words not in self.text:
            assert self._read(), f"{words!r} did not come before the end:\n{self.text}"

    @property
    def text(self) -> str:
        return self._raw.decode(errors="replace")

    def interrupt(self) -> None:
        """Ctrl-C on the keyboard."""
        os.write(self._mine, b"\x03")

    def finish(self) -> Shown:
        while self._read():
            pass
        os.close(self._mine)
        return Shown(self.text, self.process.wait(PATIENCE))

    def _read(self) -> bool:
        """Whether there was more."""
        if not select.select([self._mine], [], [], PATIENCE)[0]:
            self.process.kill()
            raise AssertionError(f"nothing was written for {PATIENCE} s:\n{self.text}")
        try:
            found = os.read(self._mine, 65536)
        except OSError:  # EIO: nobody has the other end any more
            return False
        self._raw += found
        return bool(found)


def headrace_on_a_terminal(*words: object, **options: Any) -> Terminal:
    return Terminal([sys.executable, "-m", "headrace", *words], **options)
