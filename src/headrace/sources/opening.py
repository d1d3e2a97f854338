"""A path or an hf:// URL -> an open file, so that readers need not know which it is."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, cast

from headrace.sources import hub
from headrace.sources.hub_file import HubFile

if TYPE_CHECKING:
    import pyarrow as pa


def is_remote(path: str) -> bool:
    return path.startswith(hub.SCHEME)


def nearest(path: str) -> str:
    """The same file in the hub's cache, where it lies there already; else the path itself."""
    return (hub.cached(path) or path) if is_remote(path) else path


def open_input(path: str) -> BinaryIO:
    """Unbuffered: a read may give less than was asked for."""
    if is_remote(path):
        return cast(BinaryIO, HubFile(path))
    return open(path, "rb", buffering=0)


def open_buffered(path: str) -> io.BufferedReader:
    """A read gives all that was asked for, up to the end."""
    return io.BufferedReader(cast(io.RawIOBase, open_input(path)))


def open_for_arrow(path: str) -> pa.NativeFile:
    import pyarrow as pa

    return pa.PythonFile(open_buffered(path), mode="r") if is_remote(path) else pa.OSFile(path)


def size_of(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)
