"""The trees of two reports beside each other where there is room, below each other where there is not."""

from __future__ import annotations

from itertools import takewhile, zip_longest

from headrace.diagnosis.report import Report
from headrace.diagnosis.tree import Line, tree_lines

WIDE = 120  # columns, from which two trees stand side by side
GAP = 4


def head_of(report: Report, width: int) -> list[Line]:
    """The step, its phases and what to fix first; the rest of a report has a command of its own."""
    return list(takewhile(bool, tree_lines(report, width)))


def both(before: tuple[str, Report], after: tuple[str, Report], width: int) -> list[Line]:
    if width < WIDE:
        return [*_titled(*before, width), [], *_titled(*after, width)]
    half = (width - GAP) // 2
    left, right = _titled(*before, half), _titled(*after, half)
    return [
        [*one, (" " * (half + GAP - length(one)), ""), *other] if other else one
        for one, other in zip_longest(left, right, fillvalue=list[tuple[str, str]]())
    ]


def _titled(title: str, report: Report, width: int) -> list[Line]:
    return [[(title, "bold underline")], *head_of(report, width)]


def length(line: Line) -> int:
    return sum(len(text) for text, _ in line)


def plain(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)
