"""Two reports side by side: what the gain was, and what share of the predicted one."""

from __future__ import annotations

import msgspec
import pytest

from headrace.diagnosis.compare import Comparison, compare_reports, plain_comparison
from headrace.diagnosis.report import Fix, Report, Site, phases_from, speedup
from headrace.errors import UsageError


def fix(rule: str, phase: str, saves: float, line: int, code: str = "x()") -> Fix:
    place = Site(file="/home/me/train.py", line=line, code=code, ms=saves)
    gain = speedup(100, saves)
    return Fix(rule=rule, title=rule, evidence="", advice="", phase=phase, site=place, saves_ms=saves, speedup=gain)


SYNC = fix("sync_in_loop", "host_sync", 50, 88, "loss.item()")
TOKENS = fix("tokenizing_in_loop", "tokenization", 20, 41, "tokenizer(texts)")


def report(*fixes: Fix, tokens: float | None = 1000.0, **phases: float) -> Report:
    total = sum(phases.values())
    rate = tokens / total * 1000 if tokens and total else None
    found = phases_from(phases)
    return Report(
        kind="run",
        subject="train.py",
        verdict="",
        step_ms=total,
        tokens_per_second=rate,
        phases=found,
        fixes=list(fixes),
    )


BEFORE = report(SYNC, TOKENS, tokenization=20, forward=30, host_sync=50)


def after(sync: float, *fixes: Fix) -> Comparison:
    return compare_reports(BEFORE, report(*fixes, tokenization=20, forward=30, host_sync=sync))


def test_a_gain_that_came_true() -> None:
    found = after(2, TOKENS)
    assert found.measured == pytest.approx(100 / 52)
    assert found.predicted == pytest.approx(2.0)
    assert found.came_true == pytest.approx(100 / 52 - 1)
    assert found.verdict == "The gain came true: 2.00x was predicted, 1.92x measured, 92% of it."
    assert [(outcome.rule, outcome.gone, outcome.saved_ms) for outcome in found.fixes] == [
        ("sync_in_loop", True, 48),
        ("tokenizing_in_loop", False, 0),
    ]


@pytest.mark.parametrize(
    ("sync", "says"),
    [
        (8.0, "The gain came true: "),  # 72%
        (10.0, "The gain came true in part: "),  # 67%
        (48.0, "The gain did not come true: 2.00x was predicted, and a step is 1.02x as fast as before."),
        (60.0, "Slower: a step is 0.91x as fast as before."),
    ],
)
def test_words_for_what_came_of_it(sync: float, says: str) -> None:
    assert after(sync, TOKENS).verdict.startswith(says)


def test_nothing_done_yet() -> None:
    assert after(50, SYNC, TOKENS).verdict == (
        "Nothing that was advised is done yet; a step is 1.00x as fast as before."
    )


def test_all_that_was_followed_counts() -> None:
    found = compare_reports(BEFORE, report(forward=30, host_sync=1))
    assert found.predicted == pytest.approx(100 / 30)
    assert found.came_true == pytest.approx((100 / 31 - 1) / (100 / 30 - 1))


def test_a_line_that_moved_is_the_same_line() -> None:
    moved = msgspec.structs.replace(SYNC, site=Site(file="/home/me/train.py", line=95, code="loss.item()"))
    assert not after(50, moved, TOKENS).fixes[0].gone


def test_another_line_is_another_fault() -> None:
    other = msgspec.structs.replace(SYNC, site=Site(file="/home/me/train.py", line=91, code="norm.item()"))
    assert after(20, other, TOKENS).fixes[0].gone


def test_new_faults_are_named() -> None:
    found = after(2, TOKENS, fix("padding", "forward", 10, 5))
    assert found.new == ["padding"]
    assert "New: padding" in plain_comparison(found)


def test_steps_of_another_size_are_compared_by_tokens() -> None:
    """Twice the batch in the same time is twice as fast."""
    bigger = report(TOKENS, tokens=2000.0, tokenization=20, forward=78, host_sync=2)
    found = compare_reports(BEFORE, bigger)
    assert found.by_tokens
    assert found.measured == pytest.approx(2.0)
    assert "Compared by tokens/s" in plain_comparison(found)


def test_without_tokens_steps_are_compared() -> None:
    found = compare_reports(BEFORE, report(TOKENS, tokens=None, forward=30, host_sync=20))
    assert not found.by_tokens
    assert found.measured == pytest.approx(2.0)


def test_no_gain_was_predicted() -> None:
    found = compare_reports(report(forward=30), report(forward=20))
    assert found.came_true is None
    assert found.verdict == "A step is 1.50x as fast as before; no gain was predicted."


@pytest.mark.parametrize("width", [80, 100])
def test_the_table(width: int) -> None:
    text = plain_comparison(after(2, TOKENS), width)
    lines = text.splitlines()
    assert lines[0] == "Step 100 ms → 52 ms   1.92x"
    assert lines[1].split() == ["├─", "tokenization", "20.00", "→", "20.00", "ms", "+0.00"]
    assert lines[3].split() == ["└─", "host", "sync", "50.00", "→", "2.00", "ms", "-48.00"]
    assert "train.py:88 sync_in_loop: gone, 2.00x predicted" in text
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("first", [True, False])
def test_a_report_without_steps_cannot_be_compared(first: bool) -> None:
    empty = Report(kind="data", subject="data/web", verdict="")
    pair = (empty, BEFORE) if first else (BEFORE, empty)
    with pytest.raises(UsageError, match=r"report \(data data/web\) has no time of a step"):
        compare_reports(*pair)
