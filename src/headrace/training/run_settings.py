"""The settings of a run as its folder tells them, flat: every one under its dotted name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

FACTS = "run.json"


def settings_of(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Such as train.lr. Where no file was written, as by a Trainer of one's own, the run's newest event says it."""
    try:
        facts = msgspec.json.decode((folder / FACTS).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        facts = {"recipe": about.get("extra") or {}, "train": about.get("config") or {}}
    return dict(_flat(facts))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
