"""Source: the files a user named, ready to be split and read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from headrace.errors import UsageError
from headrace.sources import catalogue
from headrace.sources.hub_listing import Lister, Listing
from headrace.sources.opening import is_remote
from headrace.sources.resolve import on_hub, resolve
from headrace.sources.span import ReadOptions, SourceFile, Span
from headrace.sources.splitting import split as split_file
from headrace.sources.stripes import MOST_FILES

FOOTERS_AT_ONCE = 8


class Source(msgspec.Struct, frozen=True):
    name: str  # what the user typed
    files: list[SourceFile]
    options: ReadOptions
    listings: list[Listing] = []  # what the hub was asked, and its answers

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def remote(self) -> bool:
        return any(is_remote(file.path) for file in self.files)

    @property
    def sequential(self) -> bool:
        """Whether documents run on from one span to the next, so that one task must read all spans in order."""
        return self.options.join is not None

    def spans(self, target_bytes: int, *, share: bool | None = None) -> list[Span]:
        """Pieces of about `target_bytes`; they depend on the files and the target only.

        `share`: whether files are divided that cost something to divide; None: if there are few files.
        """
        if target_bytes < 1:
            raise UsageError(f"A span of {target_bytes} bytes cannot be. Pass a target of at least 1.")
        share = len(self.files) <= MOST_FILES if share is None else share

        def split(file: SourceFile) -> list[Span]:
            return split_file(file, self.options, target_bytes, share=share)

        if not share or not self.remote:
            return [span for file in self.files for span in split(file)]
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as executor:
            return [span for spans in executor.map(split, self.files) for span in spans]


def open_source(
    source: str | Path | Sequence[str | Path],
    *,
    text_field: str | None = None,
    split: str | None = None,
    revision: str | None = None,
    separator: str | None = None,
    keep_damaged: bool = False,
    known: Sequence[Listing] = (),
) -> Source:
    """Find the files behind paths, globs, folders, catalogue names and hf://datasets/ URLs.

    `known`: what the hub answered before; it is not asked the same again.
    """
    given = [source] if isinstance(source, (str, Path)) else source
    arguments = [os.fspath(argument) for argument in given]
    _check_arguments(arguments, split, revision)
    if separator == "":
        raise UsageError("The separator is empty. Pass the text that stands between documents, or leave it out.")
    if text_field is not None and re.search(r'["\\\x00-\x1f]', text_field):  # msgspec compares names as written
        raise UsageError(
            f"The text field {text_field!r} has a quote, backslash or control character. Rename the field."
        )
    files: dict[str, SourceFile] = {}
    lister = Lister(known)
    for argument in arguments:
        for file in resolve(argument, split, revision, lister):
            files.setdefault(file.path, file)
    options = ReadOptions(
        text_field=text_field, separator=separator, join=_join_of(arguments), keep_damaged=keep_damaged
    )
    return Source(", ".join(arguments), list(files.values()), options, lister.used)


def _check_arguments(arguments: list[str], split: str | None, revision: str | None) -> None:
    if not arguments or not all(arguments):
        raise UsageError(f"No source was named. Pass a path, a URL or one of: {', '.join(catalogue.NAMES)}.")
    for flag, value in (("--split", split), ("--revision", revision)):
        if value is not None and not any(map(on_hub, arguments)):
            raise UsageError(f"{flag} {value} is for datasets on the hub, and none was named. Leave it out.")


def _join_of(arguments: list[str]) -> str | None:
    joins = {entry.join if (entry := catalogue.find(argument)) else None for argument in arguments}
    if len(joins) > 1:
        raise UsageError(
            f"{', '.join(arguments)}: rows of wikitext-103 are lines and those of the others documents. "
            "Prepare it on its own; datasets are mixed when they are loaded."
        )
    return joins.pop()
