"""What the child process hands back; without torch, which the parent does not need."""

from __future__ import annotations

import msgspec


class Sync(msgspec.Struct, kw_only=True):
    """One way in which one line made the CPU wait, and how often."""

    kind: str
    file: str
    line: int
    function: str
    through: str = ""  # the line of a library or of torch that did it for the user's line
    counts: dict[int, int] = {}  # by the number of optimizer steps made before


class Record(msgspec.Struct, kw_only=True):
    """Of one run of the script."""

    mode: str  # fake, or gpu
    torch: str
    steps: int = 0  # of the optimizer
    stopped: bool = False  # after the steps that were asked for
    error: str | None = None  # why the script ended early
    refused: str | None = None  # why it was not begun
    unsaved: int = 0  # checkpoints that were not written, because their numbers would be invented
    syncs: list[Sync] = []
