"""The state of a live run: where its last batch ends, and what the text and the settings are known by."""

from __future__ import annotations

from typing import Any

from headrace.errors import UsageError
from headrace.loading.live.blocks import Start
from headrace.loading.live.text import LiveText
from headrace.loading.live.walk import Place

STATE_VERSION = 1  # changes with the order of units, documents or chunks


def identity_of(live: LiveText, *, seed: int, shuffle: bool, seq_len: int, batch_size: int) -> dict[str, Any]:
    """What must be the same for the order to be the same."""
    return {
        "version": STATE_VERSION,
        "seed": seed,
        "shuffle": shuffle,
        "seq_len": seq_len,
        "batch_size": batch_size,
        "window": live.window,
        **live.identity,
    }


def write_state(identity: dict[str, Any], step: int, start: Start) -> dict[str, Any]:
    """Small, and JSON."""
    where = {**start.place._asdict(), "token": start.token, "block": start.block, "given": start.given}
    return {**identity, "step": step, **where}


def differences(identity: dict[str, Any], state: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {state.get(name)!r} then, {mine!r} now" for name, mine in identity.items() if state.get(name) != mine
    ]


def read_state(identity: dict[str, Any], state: dict[str, Any]) -> tuple[int, Start]:
    """The step and place of a state; refuses one of other text or settings, with the difference."""
    other = differences(identity, state)
    if other:
        lines = "\n  ".join(other)
        raise UsageError(f"This state belongs to other text or settings:\n  {lines}\nOpen it as it was then.")
    place = Place(int(state["epoch"]), int(state["turn"]), int(state["document"]))
    return int(state["step"]), Start(place, int(state["token"]), int(state["block"]), int(state["given"]))
