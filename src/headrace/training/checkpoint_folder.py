"""The folder of all checkpoints of a run: one writer, names that appear and go away in one step."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from headrace.errors import Busy
from headrace.files import sync
from headrace.training.checkpoint_manifest import FILE

STEP = re.compile(r"step-(\d{8,})")
LEFTOVER = re.compile(r"\.(writing|deleting|replaced)-(step-\d{8,})")


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def find_checkpoints(folder: Path) -> list[Path]:
    """Oldest first. A folder without a manifest is none."""
    if not folder.is_dir():
        return []
    return sorted((path for path in _steps(folder) if (path / FILE).is_file()), key=step_of)


def find_without_manifest(folder: Path) -> list[Path]:
    """Folders with a checkpoint's name and no manifest: nothing here makes one, so somebody took it away."""
    return sorted(path for path in _steps(folder) if not (path / FILE).is_file()) if folder.is_dir() else []


def lock_folder(folder: Path) -> TextIO:
    """Hold the folder until the file is closed. The kernel lets go when its holder dies, however it dies."""
    file = open(folder / ".lock", "a+", encoding="utf-8")  # noqa: SIM115 - closing it gives the lock back
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise Busy(f"{folder} is being written by {holder}. Stop that run, or give this one another name.") from None
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed writer left half-done. The caller holds the lock, so nobody is at work on it."""
    for path in folder.iterdir():
        match = LEFTOVER.fullmatch(path.name)
        if match and match[1] == "replaced" and not (folder / match[2]).exists():
            os.rename(path, folder / match[2])  # killed between the two renames of `publish`
        elif match:
            shutil.rmtree(path, ignore_errors=True)


def writing_name(path: Path) -> Path:
    return path.with_name(f".writing-{path.name}")


def publish(part: Path, path: Path) -> None:
    """Give a finished folder its name; one that had it before is kept until then, and until nobody reads it."""
    replaced = path.with_name(f".replaced-{path.name}")
    with contextlib.ExitStack() as stack:
        if (path / FILE).is_file():
            fcntl.flock(stack.enter_context(open(path / FILE, "r+b")), fcntl.LOCK_EX)
        if path.exists():
            os.rename(path, replaced)
        os.rename(part, path)
    sync(path.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def remove(path: Path) -> bool:
    """Delete a checkpoint, unless somebody is reading it. It loses its name first, so it never looks whole by half."""
    deleting = path.with_name(f".deleting-{path.name}")
    shutil.rmtree(deleting, ignore_errors=True)
    with open(path / FILE, "r+b") as manifest:
        try:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.rename(path, deleting)
    sync(path.parent)
    shutil.rmtree(deleting, ignore_errors=True)
    return True


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Keep `remove` and `publish` away, in this process and in others."""
    while True:
        with open(path / FILE, "rb") as manifest:
            fcntl.flock(manifest, fcntl.LOCK_SH)
            # While this waited for the lock, the folder may have been replaced by another of the same name.
            if os.path.samestat(os.fstat(manifest.fileno()), os.stat(path / FILE)):
                yield
                return


def _steps(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if STEP.fullmatch(path.name) and path.is_dir()]
