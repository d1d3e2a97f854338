"""How the maps should be read: kept in memory as a whole where they fit, row by row where they do not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from headrace.storage import Metadata

SHARE = 0.5  # of the memory that is available: the model and everything else wants some too
ACCESS = {True: "whole", False: "random"}


def choose_access(datasets: Iterable[Metadata]) -> str:
    """Read ahead and keep it all if it fits, otherwise read nothing but the rows themselves."""
    return ACCESS[sum(shard.bytes for data in datasets for shard in data.shards) <= SHARE * available_memory()]


def available_memory() -> int:
    """Bytes that this process could still use, the page cache counted as free; the smaller of machine and container."""
    limits = [_machine(), _container(Path("/sys/fs/cgroup"))]
    return min(limit for limit in limits if limit is not None)


def _machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container(group: Path) -> int | None:
    """What a control group leaves: its limit less its use, of which the page cache is not counted."""
    try:
        limit = (group / "memory.max").read_text().strip()
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return None if limit == "max" else int(limit) - int(stat["anon"])
    except (OSError, KeyError, ValueError):
        return None
