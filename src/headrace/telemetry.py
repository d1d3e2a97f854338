"""Events, one JSON object per line: all that diagnosis and the dashboard read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec


class EventLog:
    """Append-only; a line is written in one call, so a killed process leaves at most one cut line at the end."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
        if _ends_in_cut_line(path):
            self._file.write(b"\n")  # or the first new event would be lost with the cut one

    def write(self, kind: str, **fields: Any) -> None:
        self.write_event({"t": round(time.time(), 3), "kind": kind, **fields})

    def write_event(self, event: Mapping[str, Any]) -> None:
        """A number that is not finite becomes null, which is what JSON has for it."""
        self._file.write(encode_json(event) + b"\n")

    def close(self) -> None:
        self._file.close()


def encode_json(value: Any) -> bytes:
    """JSON of what events are made of: paths as text, numbers of numpy and torch as numbers."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except UnicodeEncodeError:  # half a surrogate pair, which a tokenizer's decode may give
        return msgspec.json.encode(_without_surrogates(value), enc_hook=_plain)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a log, without lines that were cut by a kill; nothing if there is no file."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue


def _ends_in_cut_line(path: Path) -> bool:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return False
        file.seek(size - 1)
        return file.read(1) != b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)  # better a name in the log than a run that ends because of its log


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_without_surrogates(key): _without_surrogates(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(entry) for entry in value]
    return value
