"""Local files as the rest of the house needs them: published whole or not at all, and full disks named."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

from headrace.errors import OutOfSpace


def write_atomically(path: Path, data: bytes) -> None:
    """After a power cut the file is there whole, or as it was before."""
    part = path.with_name(f".{path.name}.part")
    with disk_full_named(path):
        part.write_bytes(data)
        sync(part)
        os.replace(part, path)
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Syncer(threading.Thread):
    """Syncs finished files in the background, so that nobody who computes waits for the disk (5-15 ms a file)."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._folder = folder
        self._paths: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._error: OSError | None = None
        self.start()

    def add(self, path: Path) -> None:
        self._paths.put(path)

    def stop(self) -> None:
        """Leave what is not synced yet: the run did not come to its end."""
        self._paths.put(None)

    def finish(self) -> None:
        """Return when everything is on the disk, or raise what went wrong."""
        self.stop()
        self.join()
        with disk_full_named(self._folder):
            if self._error is not None:
                raise self._error
            sync(self._folder)

    def run(self) -> None:
        while (path := self._paths.get()) is not None:
            try:
                sync(path)
            except FileNotFoundError:
                pass  # its task is being done again
            except OSError as error:
                self._error = error


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
