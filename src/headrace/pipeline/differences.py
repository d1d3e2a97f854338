"""Say in words how two settings of a run differ."""

from __future__ import annotations

from typing import Any


def describe_differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    lines = []
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if key == "sources":
            lines += _source_differences(old or [], new or [])
        elif isinstance(old, dict) and isinstance(new, dict):
            lines += [f"{key}.{line}" for line in describe_differences(old, new)]
        else:
            lines.append(f"{key}: {old!r} then, {new!r} now")
    return lines


def _source_differences(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[str]:
    old, new = ({entry["path"]: entry for entry in entries} for entries in (before, now))
    lines = [f"source {path}: not there now" for path in old if path not in new]
    lines += [f"source {path}: not there then" for path in new if path not in old]
    for path in old:
        if path in new and old[path] != new[path]:
            lines.append(f"source {path}: {_version(old[path])} then, {_version(new[path])} now")
    if not lines:
        lines = ["sources: the same files in another order"]
    return lines[:5] + ([f"... and {len(lines) - 5} more sources"] if len(lines) > 5 else [])


def _version(entry: dict[str, Any]) -> str:
    revision = f" at {entry['revision']}" if entry.get("revision") else ""
    return f"{entry['size']:,} bytes{revision}"
