"""What the shards lie on, and how much memory there is to keep them in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from headrace.loading.memory import available_memory

IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
# By the names in /proc/self/mounts; those of FUSE are fuse.NAME.
NETWORK = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "davfs"),
    *("sshfs", "gcsfuse", "s3fs", "rclone", "juicefs", "mount-s3", "blobfuse", "blobfuse2", "goofys", "weka", "wekafs"),
}


class Mount(msgspec.Struct, frozen=True):
    device: str
    filesystem: str

    @property
    def in_memory(self) -> bool:
        return self.filesystem in IN_MEMORY

    @property
    def network(self) -> bool:
        return self.filesystem.removeprefix("fuse.") in NETWORK


class Memory(msgspec.Struct, frozen=True):
    """In bytes."""

    available: int
    machine: int
    limit: int | None  # of the control group, where it is below the machine's


def mount_of(path: Path, table: Path = Path("/proc/self/mounts")) -> Mount | None:
    """The file system that a path lies on; None where there is no such table."""
    try:
        lines = table.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place, best, found = path.resolve(), -1, None
    for line in lines:
        device, point, filesystem = line.split(" ")[:3]
        folder = Path(_unescaped(point))
        if place.is_relative_to(folder) and len(folder.parts) >= best:  # of two at one place the later covers the other
            best, found = len(folder.parts), Mount(_unescaped(device), filesystem)
    return found


def _unescaped(text: str) -> str:
    r"""A space in the table is \040."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def memory_now() -> Memory:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    below = limit if limit is not None and limit < machine else None
    return Memory(min(available_memory(), machine if below is None else below), machine, below)


def memory_limit(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The smallest limit of this process's control groups, of version 1 or 2; pages of files count against it."""
    limits = []
    for file in _limit_files(groups, root):
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(limits, default=None)


def _limit_files(groups: Path, root: Path) -> Iterator[Path]:
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            base, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = base / name.lstrip("/")
        yield group / file
        for parent in group.parents:  # a limit holds for all groups below it
            if parent.is_relative_to(base):
                yield parent / file
