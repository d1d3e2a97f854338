"""The datasets below a folder, by name. A name is looked up among them and never joined to a path."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

DEEPEST = 3  # data/group/part/name
MOST = 20_000  # folders looked into
FRESH = 0.9  # seconds
SETTLED = 2.0  # seconds after which a folder's time of change tells every change: clocks of file systems are coarse
Stamp = tuple[int, int, int]
MANIFEST, WORK, PLAN = "metadata.json", ".headrace", "plan.json"


class DataFolder:
    """Looks at most about once a second, however often it is asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock, self._looked = threading.Lock(), float("-inf")
        self._found: dict[str, Path] = {}

    def datasets(self) -> dict[str, Path]:
        with self._lock:
            if time.monotonic() - self._looked > FRESH:
                self._found, self._looked = find_datasets(self.root), time.monotonic()
            return self._found


def find_datasets(root: Path) -> dict[str, Path]:
    """Finished datasets and those in preparation, by their names relative to the folder, in order."""
    real = os.path.realpath(root)
    if is_dataset(real):  # the folder of one dataset was named
        return {shown_name(os.path.basename(real)): Path(real)}
    return dict(sorted(_walk(real)))


def is_dataset(folder: str) -> bool:
    """Finished, begun, or held by one who begins."""
    if os.path.isfile(os.path.join(folder, MANIFEST)):
        return True
    work = os.path.join(folder, WORK)
    return os.path.isfile(os.path.join(work, PLAN)) or os.path.isfile(os.path.join(work, "lock"))


def stamp_of(folder: Path) -> Stamp | None:
    """Changes when the dataset is written anew; None while there is no manifest."""
    try:
        found = os.stat(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def shown_name(name: str) -> str:
    """A name that is no UTF-8 can be shown, and still be looked up."""
    return os.fsencode(name).decode("utf-8", "replace")


def _walk(root: str) -> Iterator[tuple[str, Path]]:
    waiting, seen = [(root, "", 0)], {root}
    while waiting and len(seen) <= MOST:
        folder, name, depth = waiting.pop()
        for path, entry in _folders_in(folder, root):
            below = f"{name}/{entry}" if name else entry
            if path in seen:
                continue  # a link to a folder that has its own name
            seen.add(path)
            if is_dataset(path):
                yield shown_name(below), Path(path)
            elif depth + 1 < DEEPEST:
                waiting.append((path, below, depth + 1))


def _folders_in(folder: str, root: str) -> Iterator[tuple[str, str]]:
    """Real path and name of each; links are last, and count only if they lead to somewhere below the root."""
    for link, name in _entries(folder):
        path = os.path.join(folder, name)
        if link:
            path = os.path.realpath(path)
            if not os.path.isdir(path):
                continue
        if path.startswith(root.rstrip(os.sep) + os.sep):
            yield path, name


def _entries(folder: str) -> tuple[tuple[bool, str], ...]:
    """Links and folders; a folder with a million files, 1 s to list, is listed again only when it has changed."""
    try:
        changed = os.stat(folder).st_mtime_ns
        settled = time.time() - changed / 1e9 > SETTLED
        return _listed(folder, changed) if settled else _listed.__wrapped__(folder, changed)
    except OSError:
        return ()


@lru_cache(maxsize=4096)
def _listed(folder: str, changed: int) -> tuple[tuple[bool, str], ...]:
    with os.scandir(folder) as entries:
        found = [(entry.is_symlink(), entry.name) for entry in entries if _may_lead_on(entry)]
    return tuple(sorted(found))


def _may_lead_on(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and (entry.is_symlink() or entry.is_dir(follow_symlinks=False))
