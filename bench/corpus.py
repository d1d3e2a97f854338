"""The benchmark's text: the user's own JSONL, or else the source and documentation of the installed Python packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

KINDS = ("jsonl", "jsonl.zst", "parquet")
PARTS = 4  # files per corpus: datatrove does not divide a file between its workers


def make_corpus(folder: Path, megabytes: float, sources: list[Path]) -> dict[str, list[Path]]:
    """Write the same documents as JSONL, zstd JSONL and zstd Parquet; reuse what is there."""
    files = {kind: [folder / f"part-{i}.{kind}" for i in range(PARTS)] for kind in KINDS}
    if not all(path.is_file() for paths in files.values() for path in paths):
        folder.mkdir(parents=True, exist_ok=True)
        texts = list(take(sources, int(megabytes * 1e6)))
        for i in range(PARTS):
            write_part(texts[i::PARTS], {kind: paths[i] for kind, paths in files.items()})
    return files


def take(sources: list[Path], size: int) -> Iterator[str]:
    total = 0
    for text in texts_of(sources):
        yield text
        total += len(text.encode())
        if total >= size:
            return
    print(f"note: the sources hold only {total / 1e6:.0f} MB", file=sys.stderr)


def texts_of(sources: list[Path]) -> Iterator[str]:
    from headrace.sources import open_source, read_spans

    wanted = sources or [Path(path) for path in sys.path if Path(path).is_dir()]
    source = open_source([str(path) for path in wanted])
    for batch in read_spans(source.spans(8 << 20), source.options):
        yield from (text.decode() for text in batch.texts)


def write_part(texts: list[str], files: dict[str, Path]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    lines = b"".join(msgspec.json.encode({"id": i, "text": text}) + b"\n" for i, text in enumerate(texts))
    files["jsonl"].write_bytes(lines)
    files["jsonl.zst"].write_bytes(zstandard.ZstdCompressor(3).compress(lines))
    table = pa.table({"id": list(range(len(texts))), "text": texts})
    pq.write_table(table, files["parquet"], compression="zstd", row_group_size=1000)


def text_bytes(files: list[Path]) -> int:
    row = msgspec.json.Decoder(msgspec.defstruct("Row", [("text", str)]))
    return sum(len(row.decode(line).text.encode()) for path in files for line in path.read_bytes().splitlines())
