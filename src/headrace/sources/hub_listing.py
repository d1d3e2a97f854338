"""What the hub answered when a run began, so that the run goes on at the same commit and without asking again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import msgspec

from headrace.sources import hub

Question = tuple[str, str | None, tuple[str, ...]]


class Listing(msgspec.Struct, frozen=True):
    """The files of a dataset that match patterns at the commit that a revision stood for."""

    repo: str
    revision: str | None  # as it was asked for
    patterns: list[str]
    commit: str
    files: list[tuple[str, int]]  # path, size

    @property
    def question(self) -> Question:
        return self.repo, self.revision, tuple(self.patterns)

    def urls(self) -> Iterator[tuple[str, int]]:
        """(URL pinned to the commit, size) of each file."""
        for path, size in self.files:
            yield f"{hub.SCHEME}{self.repo}@{quote(self.commit, safe='')}/{path}", size


class Lister:
    """Asks the hub, unless the answer is known; keeps all answers that were used."""

    def __init__(self, known: Sequence[Listing] = ()) -> None:
        self._known = {listing.question: listing for listing in known}
        self.used: list[Listing] = []

    def list_files(self, repo: str, patterns: list[str], revision: str | None) -> Iterator[tuple[str, int]]:
        listing = self._known.get((repo, revision, tuple(patterns)))
        if listing is None:
            listing = Listing(repo, revision, patterns, *hub.list_matching(repo, patterns, revision))
        self.used.append(listing)
        return listing.urls()
