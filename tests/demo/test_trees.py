from __future__ import annotations

import pytest

from conftest_demo import Told
from headrace.demo.trees import both, head_of, length, plain


def pair(told: Told, width: int) -> str:
    found = told.findings
    return plain(both(("before", found.slow.report), ("after", found.fast[0].report), width))


def test_side_by_side_where_there_is_room(told: Told) -> None:
    first, second, *_ = pair(told, 120).splitlines()
    assert first.split() == ["before", "after"]
    assert second.count("Step ") == 2


def test_below_each_other_at_80_columns(told: Told) -> None:
    lines = pair(told, 80).splitlines()
    assert lines[0] == "before"
    assert lines[lines.index("after") - 1] == ""
    assert sum(line.startswith("Step ") for line in lines) == 2


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_is_too_long(told: Told, width: int) -> None:
    assert max(map(len, pair(told, width).splitlines())) <= width


def test_head_ends_before_the_list_of_fixes(told: Told) -> None:
    report = told.findings.slow.report
    lines = plain(head_of(report, 100)).splitlines()
    assert lines[0].startswith("Step ")
    assert "Fix slow_way.py" in " ".join(lines)
    assert not any(line.startswith("1. ") for line in lines)
    assert length([("ab", ""), ("c", "bold")]) == 3
