"""What one core does, as it was measured: the figures that every prediction begins with, in one table.

A whole run of `headrace prepare` takes FIXED seconds that do not grow with its input, and then works at a core's rate.
Both follow from runs with one and with two workers: 520 MB of text (jsonl, headrace-32k) took 6.24 s and 4.02 s, and
the bare engine keeps CROWDED of its rate when both cores work (144 MB/s on one, 246 on two). So
FIXED + W = 6.24 and FIXED + W / (2 CROWDED) = 4.02: 0.88 s and 97 MB/s.

What that is worth: the runs with one worker, and those two, are what the constants were made from, and prove nothing.
Four runs with two workers were not used: parquet -2.6%, mistral +2.6%, deepseek -6.3%, jsonl.zst -14.3% (predicted
against measured; without UNPACK, which was added after that one was seen, -19%). Eight runs of the day before, with an
earlier version and more load, took longer than predicted by 3 to 20%, four of them by more than 15%.
"""

from __future__ import annotations

import msgspec

from headrace.errors import UsageError

MACHINE = "x86-64 virtual machine, 2 cores"
FIXED = 0.88  # seconds of start, gate and manifest in a run on one machine
CROWDED = 0.855  # of its rate a core keeps when all cores of a machine work
UNPACK = 1e9  # text bytes/s that are unpacked on the way to one's own part of a shared .zst or .gz file
REFERENCE = 3e6  # text bytes/s of the reference engine, which a task gets at its last attempt
BYTES_PER_DOCUMENT = 5_408  # 520 MB in 96,150 documents
DATE_OF_SIZES = "2026-11-16"
# File bytes for each byte of text; 40 MB of English and multilingual documents with an id, zstd level 3, gzip level 6.
FILE_BYTES = {"jsonl": 1.040, "jsonl.zst": 0.245, "jsonl.gz": 0.262, "parquet": 0.276, "text": 1.0}


class Measured(msgspec.Struct, frozen=True):
    """One line of bench/results: whole runs over `text_mb`, from start to manifest, medians."""

    tokenizer: str
    format: str
    text_mb: float
    mb_per_s: float  # with one worker
    tokens: int
    itemsize: int  # bytes of a token on disk
    peak_mb: int  # of a worker
    date: str
    file: str

    @property
    def core_mb_per_s(self) -> float:
        """While it works, one core alone."""
        return self.text_mb / (self.text_mb / self.mb_per_s - FIXED)


TABLE = (
    Measured("headrace-32k", "jsonl", 520.0, 83.35, 148_070_181, 2, 254, "2026-11-16", "2026-11-16-prepare.json"),
    Measured("headrace-32k", "parquet", 520.0, 85.75, 148_070_181, 2, 399, "2026-11-16", "2026-11-16-prepare.json"),
    Measured(
        "headrace-32k", "jsonl.zst", 520.0, 69.33, 148_070_181, 2, 267, "2026-11-15", "2026-11-15-prepare-kinds.json"
    ),
    Measured(
        "mistral", "jsonl", 520.0, 28.09, 177_678_443, 2, 500, "2026-11-15", "2026-11-15-prepare-mistral-deepseek.json"
    ),
    Measured(
        "deepseek", "jsonl", 520.0, 47.19, 142_606_534, 4, 477, "2026-11-15", "2026-11-15-prepare-mistral-deepseek.json"
    ),
)
TOKENIZERS = tuple(dict.fromkeys(row.tokenizer for row in TABLE))
LIKE = {"text": "jsonl", "jsonl.gz": "jsonl.zst"}  # not measured: the nearest that is, and no faster


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of tokenizing one kind of file."""

    format: str
    core_mb_per_s: float  # of text, on a core that works alone
    file_bytes_per_byte: float
    bytes_per_token: float
    itemsize: int
    bytes_per_document: float
    peak_mb: float
    said: str  # where the rate is from
    crowded: float = CROWDED


def profile_of(tokenizer: str, format: str) -> Profile:
    """From the table; a tokenizer that was measured on JSONL alone has the reading of other formats added."""
    if format not in FILE_BYTES:
        raise UsageError(f"--format {format}: it must be one of {', '.join(FILE_BYTES)}.")
    nearest = LIKE.get(format, format)
    row, reading = _row(tokenizer, "jsonl"), 0.0
    if nearest != "jsonl":
        exact = next((one for one in TABLE if (one.tokenizer, one.format) == (tokenizer, nearest)), None)
        reading = (
            0.0
            if exact
            else 1 / _row(TOKENIZERS[0], nearest).core_mb_per_s - 1 / _row(TOKENIZERS[0], "jsonl").core_mb_per_s
        )
        row = exact or row
    return Profile(
        format=format,
        core_mb_per_s=1 / (1 / row.core_mb_per_s + reading),
        file_bytes_per_byte=FILE_BYTES[format],
        bytes_per_token=row.text_mb * 1e6 / row.tokens,
        itemsize=row.itemsize,
        bytes_per_document=BYTES_PER_DOCUMENT,
        peak_mb=row.peak_mb,
        said=f"{row.tokenizer} on {row.format}, {row.date}, {MACHINE}",
    )


def _row(tokenizer: str, format: str) -> Measured:
    for row in TABLE:
        if (row.tokenizer, row.format) == (tokenizer, format):
            return row
    raise UsageError(
        f"--tokenizer {tokenizer}: its rate is not in the table, which has {', '.join(TOKENIZERS)}. Measure it on a "
        f"part of your text with --measure SOURCE, or give its rate with --mb-per-s-per-core X."
    )
