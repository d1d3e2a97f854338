"""Two reports side by side: what changed, and whether the gain that was predicted came true."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from headrace.diagnosis.report import PHASES, Fix, Report, speedup
from headrace.diagnosis.tree import PIPE_WIDTH, Line, clean, style_of
from headrace.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

CAME_TRUE = 0.70  # of the predicted gain
SAME_STEP = 0.05  # by which the tokens of two steps may differ
CHANGED_MS = 0.005  # less is 0.00
FASTER, SLOWER = 1.03, 0.97  # between them nothing changed that two runs of the same would not show


class PhaseChange(msgspec.Struct, kw_only=True):
    name: str
    before_ms: float
    after_ms: float


class Outcome(msgspec.Struct, kw_only=True):
    """What became of a fix of the first report."""

    rule: str
    title: str
    place: str | None
    predicted: float  # times faster
    gone: bool  # the second report has it no more
    saved_ms: float | None = None  # in its phase
    predicted_ms: float = 0.0


class Comparison(msgspec.Struct, kw_only=True):
    before: str
    after: str
    step_before_ms: float
    step_after_ms: float
    measured: float  # times faster
    by_tokens: bool  # because the steps have different numbers of them
    predicted: float  # by the first fix, or by all that are gone
    came_true: float | None  # measured gain as a share of the predicted one
    verdict: str
    phases: list[PhaseChange]
    fixes: list[Outcome]
    new: list[str]  # faults that only the second report has


def compare_reports(before: Report, after: Report) -> Comparison:
    for report, name in ((before, "first"), (after, "second")):
        if not report.step_ms:
            raise UsageError(
                f"The {name} report ({report.kind} {report.subject}) has no time of a step to compare. "
                "Reports of `headrace diagnose run` and `training` have one."
            )
    outcomes = [_outcome(fix, before, after) for fix in before.fixes]
    followed = [outcome for outcome in outcomes if outcome.gone] or outcomes[:1]
    measured, by_tokens = _measured(before, after)
    predicted = speedup(before.step_ms, sum(o.predicted_ms for o in followed))
    share = (measured - 1) / (predicted - 1) if predicted > 1 else None
    known = {fix.rule for fix in before.fixes}
    return Comparison(
        before=before.subject,
        after=after.subject,
        step_before_ms=before.step_ms,
        step_after_ms=after.step_ms,
        measured=measured,
        predicted=predicted,
        came_true=share,
        verdict=_verdict(measured, predicted, share, followed),
        by_tokens=by_tokens,
        phases=_phases(before, after),
        fixes=outcomes,
        new=[fix.title for fix in after.fixes if fix.rule not in known],
    )


def _measured(before: Report, after: Report) -> tuple[float, bool]:
    """Times faster, by tokens where a step of the one has more of them than a step of the other."""
    steps = before.step_ms / after.step_ms
    if not before.tokens_per_second or not after.tokens_per_second:
        return steps, False
    tokens = after.tokens_per_second / before.tokens_per_second
    return (tokens, True) if abs(tokens / steps - 1) > SAME_STEP else (steps, False)


def _outcome(fix: Fix, before: Report, after: Report) -> Outcome:
    """A fault may stay at one line and be gone at another: it is the line that counts, wherever it has moved to."""
    left = [other for other in after.fixes if other.rule == fix.rule and _same_file(fix, other)]
    saved = before.phase(fix.phase).ms - after.phase(fix.phase).ms if fix.phase else None
    return Outcome(
        rule=fix.rule,
        title=fix.title,
        place=fix.site.place if fix.site else None,
        predicted=fix.speedup,
        gone=not left,
        saved_ms=saved,
        predicted_ms=fix.saves_ms,
    )


def _same_file(fix: Fix, other: Fix) -> bool:
    if fix.site is None or other.site is None:
        return True
    return fix.site.file == other.site.file and (not fix.site.code or fix.site.code == other.site.code)


def _phases(before: Report, after: Report) -> list[PhaseChange]:
    return [
        PhaseChange(name=name, before_ms=before.phase(name).ms, after_ms=after.phase(name).ms)
        for name in PHASES
        if before.phase(name).ms or after.phase(name).ms
    ]


def _verdict(measured: float, predicted: float, share: float | None, followed: list[Outcome]) -> str:
    speed = f"{measured:.2f}x as fast"
    if measured < SLOWER:
        return f"Slower: a step is {speed} as before."
    if share is None:
        return f"A step is {speed} as before; no gain was predicted."
    if not any(outcome.gone for outcome in followed):
        return f"Nothing that was advised is done yet; a step is {speed} as before."
    if measured <= FASTER:
        return f"The gain did not come true: {predicted:.2f}x was predicted, and a step is {speed} as before."
    words = "came true" if share >= CAME_TRUE else "came true in part"
    return f"The gain {words}: {predicted:.2f}x was predicted, {measured:.2f}x measured, {share:.0%} of it."


def plain_comparison(found: Comparison, width: int = PIPE_WIDTH) -> str:
    return "\n".join("".join(text for text, _ in line) for line in comparison_lines(found, width))


def rich_comparison(found: Comparison, width: int = PIPE_WIDTH) -> Text:
    from rich.text import Text

    return Text("\n").join(Text.assemble(*line) for line in comparison_lines(found, width))


def comparison_lines(found: Comparison, width: int) -> Iterator[Line]:
    step = f"Step {found.step_before_ms:,.4g} ms → {found.step_after_ms:,.4g} ms   {found.measured:.2f}x"
    yield [(step, "title")]
    yield from _phase_lines(found.phases)
    yield []
    yield from _wrapped(found.verdict, width, _verdict_style(found))
    if found.by_tokens:
        yield from _wrapped("Compared by tokens/s, because their steps have different numbers of tokens.", width)
    if found.fixes:
        yield []
        yield [("What was advised", "title")]
    for outcome in found.fixes:
        yield from _wrapped(_words(outcome), width, "good" if outcome.gone else "")
    for title in found.new:
        yield from _wrapped(clean(f"New: {title}"), width, "bad")


def _wrapped(text: str, width: int, style: str = "") -> Iterator[Line]:
    for part in textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False):
        yield [(part, style)]


def _verdict_style(found: Comparison) -> str:
    if found.measured < SLOWER:
        return "failed"
    return "done" if found.measured > FASTER else "title"


def _words(outcome: Outcome) -> str:
    place = f"{outcome.place} " if outcome.place else ""
    state = "gone" if outcome.gone else "still there"
    gain = f", {outcome.predicted:.2f}x predicted" if outcome.predicted > 1 else ""
    return clean(f"{place}{outcome.title}: {state}{gain}{_saved(outcome)}")


def _saved(outcome: Outcome) -> str:
    if outcome.saved_ms is None or not outcome.predicted_ms:
        return ""
    return f" ({outcome.saved_ms:,.3g} of {outcome.predicted_ms:,.3g} ms saved in its phase)"


def _phase_lines(phases: list[PhaseChange]) -> Iterator[Line]:
    """A table that is narrow enough for any terminal."""
    names = [phase.name.replace("_", " ") for phase in phases]
    wide = max(map(len, names), default=0)
    for at, (phase, name) in enumerate(zip(phases, names, strict=True)):
        branch = "└─ " if at == len(phases) - 1 else "├─ "
        change = phase.after_ms - phase.before_ms
        times = f" {phase.before_ms:>10,.2f} → {phase.after_ms:>10,.2f} ms "
        yield [(branch, "label"), (f"{name:{wide}}", style_of(phase.name)), (times, ""), _change(change)]


def _change(milliseconds: float) -> tuple[str, str]:
    style = "good" if milliseconds < -CHANGED_MS else "bad" if milliseconds > CHANGED_MS else ""
    return f"{milliseconds:>+11,.2f}", style
