"""What a run is called, out of what it says of itself when it begins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

SHOWN = 3  # names of datasets


def model_title(run: Mapping[str, Any]) -> str:
    """transformer small, 25.3 M parameters"""
    model = run.get("model")
    if isinstance(model, Mapping):
        name = " ".join(str(model[key]) for key in ("name", "size") if model.get(key))
    else:
        name = str(model) if model else "model"
    count = run.get("parameters")
    return f"{name}, {_amount(count)} parameters" if isinstance(count, (int, float)) else name


def data_title(run: Mapping[str, Any]) -> str:
    """The last parts of the datasets' names; empty if the run does not say."""
    names = run.get("datasets") or run.get("data") or []
    if isinstance(names, str):
        names = [names]
    short = [PurePath(str(name)).name or str(name) for name in names]
    more = f" and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
    return ", ".join(short[:SHOWN]) + more


def _amount(count: float) -> str:
    for unit in ("", " k", " M", " G"):
        if count < 1000:
            return f"{count:,.0f}" if not unit else f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} T"
