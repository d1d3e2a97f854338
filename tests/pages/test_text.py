"""Text cannot leave its place, and numbers read as people write them."""

from __future__ import annotations

from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest_pages import HOSTILE
from headrace.pages.text import amount, duration, number, percent, text


@given(st.text())
def test_text_has_no_markup_and_stays_readable(value: str) -> None:
    shown = text(value)
    shown.encode()
    assert not set("<>\"'") & set(shown)
    assert len(unescape(shown)) == len(value)
    for before, after in zip(value, unescape(shown), strict=True):
        assert after == before or (after == "\ufffd" and not before.isprintable())


def test_hostile_text() -> None:
    shown = text(HOSTILE)
    assert "&lt;script&gt;" in shown
    assert not set("<>\"'\x07\u202e\ud800") & set(shown)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (1_234_567, "1.23 M"), (999_999, "1 M"), (5e9, "5 G"), (None, "–")],
)
def test_amount(value: float | None, shown: str) -> None:
    assert amount(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.25, "0.2 s"), (42, "42 s"), (59.96, "1 min"), (250, "4 min 10 s"), (7800, "2 h 10 min"), (273_600, "3 d 4 h")],
)
def test_duration(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf"), "x", True])
def test_what_is_no_number_is_a_dash(nothing: object) -> None:
    assert {amount(nothing), number(nothing), percent(nothing), duration(nothing)} == {"–"}


def test_numbers() -> None:
    assert [number(3.14159), number(12345), number(0.5, ".4f"), number(12345.6)] == [
        "3.142",
        "12,345",
        "0.5000",
        "12,346",
    ]
    assert [percent(0), percent(0.004), percent(0.0996), percent(1.2)] == ["0%", "0.4%", "10%", "120%"]
