"""Several runs side by side, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_plus

MOST = 32  # runs at once
LEFT_OUT = {"train.out"}  # differs always, and says nothing


def names_in(query: str) -> list[str]:
    """The names in `runs=a,b`: a comma in a name is written %2C, so the query is divided before it is decoded."""
    found: list[str] = []
    for part in query.split("&"):
        key, _, value = part.partition("=")
        if key == "runs":
            found += [unquote_plus(name) for name in value.split(",") if name]
    return list(dict.fromkeys(found))


def differences(configs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Settings that are not the same in all; None where a run does not have one."""
    names = dict.fromkeys(name for config in configs for name in config if name not in LEFT_OUT)
    rows = [{"name": name, "values": [config.get(name) for config in configs]} for name in names]
    return [row for row in rows if any(value != row["values"][0] for value in row["values"])]
