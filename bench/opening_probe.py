"""One measurement of bench/opening.py, in a fresh process with imports done: python opening_probe.py WHAT FOLDER."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from headrace import Loader, TokenStore

DESCRIPTORS = 1024  # the usual limit of a process
READ = 20_000
SETTLE = 0.3  # until the batches ahead are filled: their memory counts too


def main() -> None:
    what, folder = sys.argv[1:]
    print(json.dumps({"store": open_store, "loader": open_loader, "descriptors": read_many}[what](folder)))


def open_store(folder: str) -> dict[str, float]:
    before, started = memory(), time.perf_counter()
    store = TokenStore(folder)
    opened = time.perf_counter()
    int(store[len(store) // 2].sum())
    return {"open_ms": ms(started, opened), "first_ms": ms(started, time.perf_counter()), **growth(before)}


def open_loader(folder: str) -> dict[str, float]:
    before, started = memory(), time.perf_counter()
    loader = Loader(folder, seq_len=2048, batch_size=32)
    opened = time.perf_counter()
    next(loader)
    return {"open_ms": ms(started, opened), "first_ms": ms(started, time.perf_counter()), **growth(before)}


def read_many(folder: str) -> dict[str, float]:
    """Random chunks of a store, then batches of a loader, counting descriptors."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    before, started = memory(), time.perf_counter()
    store = TokenStore(folder)
    opened = time.perf_counter()
    for index in np.random.default_rng(0).integers(0, len(store), READ).tolist():
        store[index].sum()
    read, after_store = time.perf_counter(), descriptors()
    loader = Loader(folder, seq_len=2048, batch_size=32)
    next(loader)
    first = time.perf_counter()
    for _ in range(READ // 32):
        next(loader)
    return {
        "open_ms": ms(started, opened),
        "chunks_ms": ms(opened, read),
        "descriptors": after_store,
        "loader_first_ms": ms(read, first),
        "loader_batches_ms": ms(first, time.perf_counter()),
        "loader_and_store_descriptors": descriptors(),
        **growth(before),
    }


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def ms(since: float, until: float) -> float:
    return (until - since) * 1e3


def memory() -> dict[str, float]:
    """Resident size and its part that is not files, in MB."""
    # Not from status, which counts per thread and may be behind by 64 pages for each.
    found = kilobytes("smaps_rollup")
    return {"rss": found["Rss"] / 1024, "own": found["Anonymous"] / 1024}


def growth(before: dict[str, float]) -> dict[str, float]:
    time.sleep(SETTLE)
    after = memory()
    return {
        "rss_growth_mb": after["rss"] - before["rss"],
        "own_growth_mb": after["own"] - before["own"],
        "highest_mb": kilobytes("status")["VmHWM"] / 1024,  # not ru_maxrss, which begins with the parent's
    }


def kilobytes(file: str) -> dict[str, int]:
    lines = Path(f"/proc/self/{file}").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}


if __name__ == "__main__":
    main()
