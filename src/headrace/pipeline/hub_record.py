"""What the hub said when a run began: whoever goes on keeps its commits, and knows files and cuts without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from headrace.files import write_atomically
from headrace.pipeline.progress import Observer
from headrace.sources import Listing, ReadOptions, Source, Span
from headrace.storage import SourceInfo

FILE = "hub.json"


class HubRecord(msgspec.Struct, frozen=True):
    """The hub's answers, and the spans that came of them: to cut a Parquet file again would mean to read its footer."""

    listings: list[Listing]
    sources: list[SourceInfo]
    read: ReadOptions
    task_bytes: int
    spans: list[Span]

    def spans_of(self, source: Source, task_bytes: int) -> list[Span] | None:
        """The spans that this source was cut into before; None if it is another, or to be cut otherwise."""
        now = (sources_of(source), source.options, task_bytes)
        return self.spans if now == (self.sources, self.read, self.task_bytes) else None

    def tell_pinned(self, listings: Sequence[Listing], observer: Observer) -> None:
        """Say which commits were not looked up again."""
        kept = ((listing.repo, listing.commit) for listing in listings if listing in self.listings)
        for repo, commit in dict.fromkeys(kept):
            observer.notice(f"{repo} stays at commit {commit[:12]}, as it was begun with; --force takes the newest.")


def sources_of(source: Source) -> list[SourceInfo]:
    return [SourceInfo(file.path, file.size, file.revision) for file in source.files]


def read_record(folder: Path) -> HubRecord | None:
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=HubRecord) if path.is_file() else None


def write_record(folder: Path, record: HubRecord) -> None:
    """Nothing for a run that asked no hub."""
    if record.listings:
        write_atomically(folder / FILE, msgspec.json.encode(record))
    else:
        (folder / FILE).unlink(missing_ok=True)
