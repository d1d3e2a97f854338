"""Local files as the rest of the house needs them: published whole or not at all, and full disks named."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from headrace.errors import OutOfSpace


def publish(part: Path, final: Path) -> None:
    """Give a finished file its name: after a power cut it is there whole or not there."""
    fd = os.open(part, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(part, final)
    sync_folder(final.parent)


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    with disk_full_named(path):
        part.write_bytes(data)
        publish(part, path)


@contextlib.contextmanager
def disk_full_named(path: Path) -> Iterator[None]:
    """Turn 'no space left' into an error that says where and what next."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OutOfSpace(
            f"No space left while writing {path}. What is finished is kept. "
            f"Free space on that disk and run the same command again: it goes on where it was."
        ) from error


def human_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
