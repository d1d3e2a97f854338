"""gigatoken's cache is bounded by loading the engine anew."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.tokenizers import fast, load_tokenizer
from headrace.tokenizers.base import Unsupported


def test_a_grown_engine_is_loaded_anew_and_stays_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = load_tokenizer("headrace-32k")
    engine: Any = tokenizer.fast("gigatoken")
    loads = []
    real_load = engine._load
    engine._load = lambda: (loads.append(1), real_load())[1]
    resident = iter([10 << 30, 0, 0])  # grown far; then what it is after the reload; then no growth
    monkeypatch.setattr(fast, "resident_bytes", lambda: next(resident))
    first = engine.encode([b"hello world"])[0].tolist()
    second = engine.encode([b"hello world"])[0].tolist()
    assert loads == [1]
    assert first == second == tokenizer.reference().encode([b"hello world"])[0].tolist()


def test_what_an_engine_cannot_load_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="gigatoken cannot load it"):
        fast.from_json("gigatoken", '{"model": {"type": "WordLevel"}}')
    with pytest.raises(Unsupported, match="fastokens cannot load it"):
        fast.from_json("fastokens", "not json")


def test_resident_bytes_is_plausible() -> None:
    assert 1 << 20 < fast.resident_bytes() < 1 << 40
