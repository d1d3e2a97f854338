"""Folder: the runs below a folder, by name. What is not in its list does not exist for anybody who asks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

MARKS = {"events.jsonl", "run.json"}  # a folder with one of these is a run
READ = MARKS | {"metrics_history.json", "text_samples.json", "checkpoints"}  # what is read in one
DEEPEST = 6
MOST = 20_000  # folders looked into
FRESH = 0.9  # seconds


class Folder:
    """Looks at most about once a second, however often it is asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock, self._looked = threading.Lock(), float("-inf")
        self._runs: dict[str, Path] = {}

    def runs(self) -> dict[str, Path]:
        with self._lock:
            if time.monotonic() - self._looked > FRESH:
                self._runs, self._looked = dict(find_runs(self.root)), time.monotonic()
            return self._runs

    def get(self, name: str) -> Path | None:
        """The folder of a run; names are looked up and never joined to a path."""
        return self.runs().get(name)


def find_runs(root: Path) -> Iterator[tuple[str, Path]]:
    """Names relative to the folder, with slashes where runs are in groups."""
    real = os.path.realpath(root)
    waiting, seen = [(real, "")], {real}
    while waiting and len(seen) <= MOST:
        folder, name = waiting.pop()
        entries = _entries(folder)
        if any(entry.name in MARKS for entry in entries):
            if all(_stays(entry, real) for entry in entries if entry.name in READ):
                yield _shown(name or os.path.basename(real)), Path(folder)
        elif name.count("/") < DEEPEST:
            for entry in entries:
                path = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                if path not in seen and _is_folder(entry) and _stays(entry, real):
                    seen.add(path)
                    waiting.append((path, f"{name}/{entry.name}" if name else entry.name))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Links last, so that a folder is known by its own name if it has one."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: (entry.is_symlink(), entry.name))
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.is_dir()
    except OSError:
        return False


def _stays(entry: os.DirEntry[str], root: str) -> bool:
    """A link counts if it leads to something below the root."""
    return not entry.is_symlink() or os.path.realpath(entry.path).startswith(root.rstrip(os.sep) + os.sep)


def _shown(name: str) -> str:
    """A name that is no UTF-8 can be shown, and still be looked up."""
    return os.fsencode(name).decode("utf-8", "replace")
