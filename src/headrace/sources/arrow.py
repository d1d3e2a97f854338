"""Arrow IPC: the file format, whose spans are ranges of record batches, and the stream format of HF datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.sources.batching import Piece
from headrace.sources.columns import choose_column, first_line, read_batches
from headrace.sources.damage import Damaged
from headrace.sources.opening import open_buffered, open_for_arrow, size_of
from headrace.sources.span import ReadOptions, Span
from headrace.sources.streams import seekable

if TYPE_CHECKING:
    import pyarrow as pa

FILE_MAGIC = b"ARROW1"
STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"
CONTINUATION = STREAM_END[:4]  # absent in streams from before Arrow 0.15, which may also lack the long end


def read(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    with seekable(path, span.compression) as plain:
        if is_file_format(plain):
            yield from _read_file(plain, span, options)
        else:
            yield from _read_stream(plain, span, options)


def is_file_format(path: str) -> bool:
    with open_buffered(path) as file:
        return file.read(len(FILE_MAGIC)) == FILE_MAGIC


def record_batches(path: str) -> int:
    """How many record batches a file of the file format has."""
    with open_for_arrow(path) as source:
        return int(_open_file(source).num_record_batches)


def _read_file(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    with open_for_arrow(path) as source:
        schema = _open_file(source).schema
        keys = choose_column(schema, options.text_field, span.path)
        reader = _open_file(source, schema.get_field_index(keys[0]))
        numbers = range(span.start, reader.num_record_batches if span.stop is None else span.stop)
        first_row = sum(reader.get_batch(number).num_rows for number in range(span.start))
        batches = (reader.get_batch(number) for number in numbers)
        reached = 0
        for done, (_, piece) in enumerate(read_batches(batches, keys, span.path, first_row), 1):
            position = span.size * done // len(numbers)
            yield piece._replace(advance=position - reached)
            reached = position


def _read_stream(path: str, span: Span, options: ReadOptions) -> Iterator[Piece]:
    with open_buffered(path) as file:
        size = size_of(file)
    with open_for_arrow(path) as source:
        schema = _open_stream(source).schema
        keys = choose_column(schema, options.text_field, span.path)
        source.seek(0)
        reader = _open_stream(source, schema.get_field_index(keys[0]))
        reached = rows = 0
        for rows_done, piece in read_batches(reader, keys, span.path, 0):
            rows = rows_done
            position = span.size * source.tell() // size
            yield piece._replace(advance=position - reached)
            reached = position
    if not _has_end(path):
        raise Damaged(f"row {rows + 1}", "the stream has no end mark: the file was cut short")


def _open_file(source: pa.NativeFile, column: int | None = None) -> pa.RecordBatchFileReader:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(source, options=_options(column))
    except (pa.ArrowException, OSError) as error:
        raise Damaged("its footer", f"{first_line(error)}; the file was cut short") from None


def _open_stream(source: pa.NativeFile, column: int | None = None) -> pa.RecordBatchStreamReader:
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(source, options=_options(column))
    except (pa.ArrowException, OSError) as error:
        raise Damaged("byte 0", f"{first_line(error)}; the file was cut short or is no Arrow file") from None


def _options(column: int | None) -> pa.ipc.IpcReadOptions:
    import pyarrow as pa

    return pa.ipc.IpcReadOptions(included_fields=None if column is None else [column], use_threads=False)


def _has_end(path: str) -> bool:
    """A stream cut between two messages reads without an error, so its end mark is looked for."""
    with open_buffered(path) as file:
        old = file.read(4) != CONTINUATION
        file.seek(-8, os.SEEK_END)
        tail = file.read()
    return tail == STREAM_END or (old and tail.endswith(b"\0\0\0\0"))
