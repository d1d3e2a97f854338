"""Datasets that have a short name."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator

import msgspec

from headrace.errors import UsageError

STDLIB = "python-stdlib"
# Tests are 62% of the bytes of Python 3.11's library, and much of them is data.
STDLIB_SKIPPED = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}


class Entry(msgspec.Struct, frozen=True):
    name: str
    repo: str
    splits: dict[str, str]  # split -> glob within the repository
    aliases: tuple[str, ...] = ()
    join: str | None = None

    def pattern(self, split: str | None) -> str:
        split = split or "train"
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {split!r}. Pass --split with one of: {', '.join(self.splits)}.")
        return self.splits[split]


def _splits(pattern: str, *names: str) -> dict[str, str]:
    return {name: pattern.format(split=name) for name in names}


ENTRIES = (
    Entry(
        "slimpajama",
        "cerebras/SlimPajama-627B",
        _splits("{split}/chunk*/*.jsonl.zst", "train", "validation", "test"),
    ),
    Entry("finewebedu", "HuggingFaceFW/fineweb-edu", {"train": "sample/10BT/*.parquet"}, ("fineweb-edu",)),
    Entry(
        "wikitext-103",
        "Salesforce/wikitext",
        _splits("wikitext-103-raw-v1/{split}-*.parquet", "train", "validation", "test"),
        ("wikitext103",),
        join="wikitext",
    ),
    Entry("tinystories", "roneneldan/TinyStories", _splits("data/{split}-*.parquet", "train", "validation")),
    Entry("openwebtext", "Skylion007/openwebtext", _splits("plain_text/{split}-*.parquet", "train")),
)
NAMES = (*(entry.name for entry in ENTRIES), STDLIB)


def find(name: str) -> Entry | None:
    """The entry of a name, an alias or a full repository id, whatever its case."""
    wanted = name.lower()
    matches = (e for e in ENTRIES if wanted in (e.name, e.repo.lower(), *e.aliases))
    return next(matches, None)


def stdlib_files() -> Iterator[str]:
    """The running Python's own library, without its tests and installed packages: text on every machine, offline."""
    for folder, folders, files in os.walk(sysconfig.get_path("stdlib")):
        folders[:] = [name for name in folders if name not in STDLIB_SKIPPED and not name.startswith(".")]
        yield from (os.path.join(folder, name) for name in files if name.endswith(".py") and not name.startswith("."))
