"""Who holds a lock, without taking it: to try it, even for a moment, could refuse a run that begins just then."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

LISTED = Path("/proc/locks")
HELD = re.compile(r"^\d+: FLOCK +ADVISORY +WRITE (\d+) \S+:(\d+) ", re.MULTILINE)
HOLDER = re.compile(r"process (\d+) on (.*)")


class Locks:
    """What processes of this machine hold at one moment, as the kernel lists it."""

    def __init__(self) -> None:
        try:
            text = LISTED.read_text(encoding="ascii", errors="replace")
        except OSError:  # not on this system
            self._held: set[tuple[int, int]] | None = None
        else:
            self._held = {(int(process), int(inode)) for process, inode in HELD.findall(text)}

    def holds(self, lock: Path) -> bool | None:
        """Whether a process has this lock; None where nobody can tell from here.

        The device's number is left out: it differs from the one of stat on some file systems.
        """
        if self._held is None:
            return None
        try:
            inode = os.stat(lock).st_ino
            holder = HOLDER.fullmatch(lock.read_text(encoding="utf-8", errors="replace").strip())
        except OSError:
            return None
        if holder is None or holder[2] != socket.gethostname():
            return None
        return (int(holder[1]), inode) in self._held
