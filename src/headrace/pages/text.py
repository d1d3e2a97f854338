"""Anything as text of a page, and numbers as people read them."""

from __future__ import annotations

import math
from html import escape
from typing import Any

TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they turn the text beside them around


def text(value: object) -> str:
    """Anything as HTML text or as the value of an attribute, neither of which it can leave."""
    shown = str(value).encode("utf-8", "replace").decode()
    return escape("".join(char if _showable(char) else "\ufffd" for char in shown), quote=True)


def _showable(char: str) -> bool:
    """HTML has no place for control characters, and U+202A..2069 would turn the text beside them around."""
    return char in "\n\t" or not (
        char < " " or "\x7f" <= char < "\xa0" or char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def amount(value: Any) -> str:
    """1234567 as 1.23 M; what is no number as a dash."""
    if not is_number(value):
        return "–"
    for unit in ("", " k", " M", " G", " T"):
        if abs(value) < 999.5:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:,.0f} P"


def number(value: Any, form: str = ".4g") -> str:
    """With commas where it is long; what is no number as a dash."""
    if not is_number(value):
        return "–"
    if isinstance(value, int) or (form == ".4g" and abs(value) >= 1000):
        return f"{value:,.0f}"
    return f"{value:{form}}"


def percent(value: Any) -> str:
    if not is_number(value):
        return "–"
    return f"{value:.1%}" if 0 < abs(value) < 0.0995 else f"{value:.0%}"


def duration(seconds: Any) -> str:
    """8.2 s, 4 min 10 s, 2 h 10 min, 3 d 4 h."""
    if not is_number(seconds):
        return "–"
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
