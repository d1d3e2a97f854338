"""Span: a piece of one file that a worker can read on its own."""

from __future__ import annotations

import msgspec


class SourceFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One input file, as a dataset's manifest lists it."""

    path: str  # absolute, or an hf://datasets/OWNER/NAME@COMMIT/... URL
    size: int
    format: str  # jsonl json parquet arrow text
    compression: str | None = None  # gz zst bz2 xz
    revision: str | None = None  # the commit of a hub file


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A byte range of an uncompressed file, a range of row groups or record batches, or (stop None) a whole file."""

    path: str  # a local path or an hf://datasets/... URL
    format: str  # jsonl json parquet arrow text
    size: int  # input bytes it stands for, for balance and progress
    compression: str | None = None  # gz zst bz2 xz
    start: int = 0
    stop: int | None = None  # exclusive


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a reader needs to know beside its span; part of a dataset's identity."""

    text_field: str | None = None  # None: the first of TEXT_FIELDS that the file's first record has
    separator: str | None = None  # text files only: what divides documents; None: a file is a document
    join: str | None = None  # "wikitext": rows are lines, headings begin articles
    keep_damaged: bool = False  # keep what precedes the damage in a cut or corrupt file instead of stopping
