"""What a file's name says about its format and compression."""

from __future__ import annotations

import re

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".txt": "text",
    ".md": "text",
    ".py": "text",
    ".rst": "text",
}
COMPRESSIONS = {".gz": "gz", ".zst": "zst", ".bz2": "bz2", ".xz": "xz"}
SUPPORTED = f"{' '.join(FORMATS)}, each also with {' '.join(COMPRESSIONS)} behind"


def recognise(name: str) -> tuple[str, str | None] | None:
    """(format, compression) of a file name, or None where the suffix is not one we read."""
    stem, compression = strip_compression(name)
    match = re.search(r"[^/\\](\.[a-z0-9]+)$", stem.lower())  # a leading character: '.json' alone is a hidden file
    format = FORMATS.get(match[1]) if match else None
    return (format, compression) if format else None


def strip_compression(name: str) -> tuple[str, str | None]:
    for suffix, compression in COMPRESSIONS.items():
        if name.lower().endswith(suffix):
            return name[: -len(suffix)], compression
    return name, None


def natural_order(path: str) -> tuple[list[tuple[int, int, str]], str]:
    """A sort key that puts part-2 before part-10; the path itself breaks ties such as part-2 and part-02."""
    pieces = re.split(r"(\d+)", path)
    return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in pieces], path
