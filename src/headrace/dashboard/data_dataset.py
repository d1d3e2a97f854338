"""Everything about one dataset that its page shows at first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from headrace.dashboard.data_folder import stamp_of
from headrace.dashboard.data_lengths import EMPTY as NO_LENGTHS
from headrace.dashboard.data_lengths import length_statistics
from headrace.dashboard.data_stores import Newest, Stores
from headrace.dashboard.data_summary import PREPARATIONS, read_plan, summarise
from headrace.errors import HeadraceError
from headrace.storage import TRAIN, VAL, Metadata, read_metadata

MOST_SOURCES, MOST_SHARDS = 50, 2000  # listed; a page shows no more of them
LONG_LISTS = ("sources", "shards")  # of the metadata and of its config


class DatasetPage:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._lengths: Newest[dict[str, Any]] = Newest(32)

    def describe(self, name: str, folder: Path, split: str = TRAIN) -> dict[str, Any]:
        """A dataset in preparation has no splits yet, a damaged one says what is wrong with it."""
        summary = summarise(name, folder)
        if stamp_of(folder) is None or summary["problem"]:
            plan = read_plan(folder)
            return self._answer(summary, _without_lists(plan), folder, None, NO_LENGTHS)
        metadata = read_metadata(folder)
        try:
            lengths = self._lengths_of(folder, split)
        except HeadraceError as error:
            summary, lengths = {**summary, "problem": str(error)}, NO_LENGTHS
        about = _without_lists(msgspec.to_builtins(metadata))
        about["config"] = _without_lists(about["config"])
        about["sources"] = [msgspec.to_builtins(source) for source in metadata.sources[:MOST_SOURCES]]
        about["sources_total"] = len(metadata.sources)
        return self._answer(summary, about, folder, metadata, lengths)

    def _answer(
        self,
        summary: dict[str, Any],
        about: dict[str, Any],
        folder: Path,
        metadata: Metadata | None,
        lengths: dict[str, Any],
    ) -> dict[str, Any]:
        return {
            "dataset": summary,
            "metadata": about,
            "splits": splits_of(metadata) if metadata else [],
            "shards": _shards(metadata) if metadata else [],
            "shards_total": len(metadata.shards) if metadata else 0,
            "lengths": lengths,
            "prepare": PREPARATIONS.of(folder).as_dict(),
        }

    def _lengths_of(self, folder: Path, split: str) -> dict[str, Any]:
        store, stamp = self._stores.open(folder, split)
        return self._lengths.get((folder, stamp, split), lambda: {"split": split, **length_statistics(store)})


def splits_of(metadata: Metadata) -> list[dict[str, Any]]:
    """Those that have documents."""
    found = []
    for name in dict.fromkeys((TRAIN, VAL, *(shard.split for shard in metadata.shards))):
        shards = metadata.of_split(name)
        tokens, documents = sum(shard.tokens for shard in shards), sum(shard.documents for shard in shards)
        chunks = tokens // max(metadata.chunk_size, 1)
        if documents:
            found.append({"name": name, "tokens": tokens, "documents": documents, "chunks": chunks})
    return found


def _shards(metadata: Metadata) -> list[dict[str, Any]]:
    return [
        {
            "name": shard.name,
            "split": shard.split,
            "tokens": shard.tokens,
            "documents": shard.documents,
            "bytes": shard.bytes,
        }
        for shard in metadata.shards[:MOST_SHARDS]
    ]


def _without_lists(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in LONG_LISTS}
