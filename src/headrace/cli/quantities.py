"""Amounts as people write them: 3TB, 256MiB, 15T, 1,16,64."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
WRITTEN = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([kmgtpe]?)(i?)b?", re.I)


if TYPE_CHECKING:  # generic in new versions of click alone
    AmountType = click.ParamType[float]
    CountsType = click.ParamType[tuple[int, ...]]
else:
    AmountType = CountsType = click.ParamType


class Amount(AmountType):
    """A number with k, M, G, T, P or E behind it, in powers of 1,000 or (Ki, Mi, ...) of 1,024; B may follow."""

    name = "amount"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        found = WRITTEN.fullmatch(str(value).replace("_", "").strip())
        if not found or (found[3] and not found[2]):
            self.fail(f"{value!r} is no amount. Write for example 3TB, 1.5TiB, 500GB or 15T.", param, ctx)
        power: int = POWERS[found[2].lower()]
        return float(found[1]) * float((1024 if found[3] else 1000) ** power)


class Counts(CountsType):
    """Whole numbers with commas between them: 1,16,64."""

    name = "counts"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and int(part) for part in parts):
            self.fail(f"{value!r}: write one number of workers, or several with commas: 1,16,64.", param, ctx)
        return tuple(int(part) for part in parts)


AMOUNT, COUNTS = Amount(), Counts()
