"""Events, one JSON object per line: all that diagnosis and the dashboard read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec


class EventLog:
    """Append-only; a line is written in one call, so a killed process leaves at most one cut line at the end."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()

    def write(self, kind: str, **fields: Any) -> None:
        self._file.write(msgspec.json.encode({"t": round(time.time(), 3), "kind": kind, **fields}) + b"\n")

    def close(self) -> None:
        self._file.close()
