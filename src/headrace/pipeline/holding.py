"""Who may write into a dataset's folder: one whole run alone, or the shares of one beside each other.

A whole run takes `lock` for itself. A share takes it together with other shares, and `lock-00003` for itself. The
kernel lets a lock go when its holder dies, however it dies. On network file systems this is as good as their flock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from headrace.errors import Busy

LOCK = "lock"
NAMED = 5  # holders in a message


@contextlib.contextmanager
def hold_alone(work: Path) -> Iterator[None]:
    with _opened(work / LOCK) as file:
        if not _take(file, fcntl.LOCK_EX):
            raise _busy(work.parent, _holders(work, file))
        _sign(file)
        yield


@contextlib.contextmanager
def hold_share(work: Path, index: int) -> Iterator[None]:
    with _opened(work / LOCK) as everything, _opened(_share_lock(work, index)) as own:
        if not _take(everything, fcntl.LOCK_SH):
            raise _busy(work.parent, _signed(everything))
        if not _take(own, fcntl.LOCK_EX):
            raise Busy(
                f"Share {index} of {work.parent} is being done by {_signed(own)}. Wait until it is done, or stop it: "
                f"the same command then goes on where it was."
            )
        _sign(own)
        yield


def _busy(folder: Path, holder: str) -> Busy:
    return Busy(
        f"{folder} is being written by {holder}. Wait until it is done, or stop it: "
        f"the same command then goes on where it was."
    )


def _share_lock(work: Path, index: int) -> Path:
    return work / f"{LOCK}-{index:05d}"


def _opened(path: Path) -> IO[str]:
    return open(path, "a+", encoding="utf-8")


def _take(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(file: IO[str]) -> None:
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()


def _signed(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip() or "another process"


def _holders(work: Path, file: IO[str]) -> str:
    """The whole run that has signed the lock, or where it can be shared, the shares that hold it."""
    if not _take(file, fcntl.LOCK_SH):
        return _signed(file)
    held = [f"share {int(path.name[len(LOCK) + 1 :])} ({holder})" for path, holder in _held_shares(work)]
    if not held:
        return "a share that ends just now"
    return ", ".join(held[:NAMED]) + (f" and {len(held) - NAMED} more shares" if held[NAMED:] else "")


def _held_shares(work: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(work.glob(f"{LOCK}-[0-9]*")):
        with _opened(path) as file:
            if not _take(file, fcntl.LOCK_SH):
                yield path, _signed(file)
