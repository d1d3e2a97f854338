"""A report as a tree for people. The same lines with colour and without: on a terminal, in a pipe, in a page."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from headrace.diagnosis.report import Fix, Phase, Report, Site

if TYPE_CHECKING:
    from rich.text import Text

PIPE_WIDTH = 100
LEAST_NOTE = 28  # columns beside a phase; with fewer its note goes below
TRIFLE = 0.005
ARROW = "← bottleneck: "
AMDAHL = "(bound by Amdahl, measured share)"

Line = list[tuple[str, str]]  # text, and the name of its style in the theme of the terminal


def plain_tree(report: Report, width: int = PIPE_WIDTH) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in tree_lines(report, width))


def rich_tree(report: Report, width: int = PIPE_WIDTH) -> Text:
    from rich.text import Text

    lines = (Text.assemble(*line) for line in tree_lines(report, width))
    return Text("\n").join(lines)


def tree_lines(report: Report, width: int) -> Iterator[Line]:
    yield [(headline(report), "title")]
    yield from _phases(report, width)
    yield from _first(report, width)
    yield from _verdict(report, width)
    for rank, fix in enumerate(report.fixes, 1):
        yield []
        yield from _fix(rank, fix, width)
    if report.missing:
        yield []
        yield [("Not measured", "title")]
        for reason in report.missing:
            yield from _wrapped(clean(reason), width, "  ", "label")


def headline(report: Report) -> str:
    """Step 412 ms   1,240 tokens/s   CPU 100%   GPU 10%"""
    parts = [f"Step {_ms(report.step_ms)} ms" if report.step_ms else clean(f"{report.kind} {report.subject}")]
    if report.tokens_per_second is not None:
        parts.append(f"{report.tokens_per_second:,.0f} tokens/s")
    if report.cpu is not None:
        parts.append(f"CPU {report.cpu:.0%}")
    if report.gpu is not None:
        parts.append(f"GPU {report.gpu:.0%}")
    return "   ".join(parts)


def rows(report: Report) -> list[tuple[Phase, Fix | None]]:
    """Phases, each with the best fix that names it; forward and backward together if neither is at fault."""
    named: dict[str, Fix] = {}
    for fix in reversed(report.fixes):
        if fix.phase:
            named[fix.phase] = fix
    phases = list(report.phases)
    names = [phase.name for phase in phases]
    if "forward" in names and "backward" in names and not named.keys() & {"forward", "backward"}:
        at, (forward, backward) = names.index("forward"), (report.phase("forward"), report.phase("backward"))
        both = Phase(name="forward+backward", ms=forward.ms + backward.ms, share=forward.share + backward.share)
        phases[at] = both
        phases.remove(backward)
    return [(phase, named.get(phase.name)) for phase in _without_trifles(phases, named.keys())]


def _without_trifles(phases: list[Phase], named: Collection[str]) -> list[Phase]:
    """Phases that would show as <1% in one, so that the times still add up."""
    small = [phase for phase in phases if phase.share < TRIFLE and phase.name not in named]
    if len(small) < 2:
        return phases
    rest = Phase(name="all else", ms=sum(p.ms for p in small), share=sum(p.share for p in small))
    return [phase for phase in phases if phase not in small] + [rest]


def _phases(report: Report, width: int) -> Iterator[Line]:
    table = rows(report)
    labels = [phase.name.replace("_", " ") for phase, _ in table]
    times = [f"{_ms(phase.ms)} ms" for phase, _ in table]
    wide, long = max(map(len, labels), default=0), max(map(len, times), default=0)
    for number, ((phase, fix), label, time) in enumerate(zip(table, labels, times, strict=True)):
        last = number == len(table) - 1
        name = f"{label:{wide}}", style_of(phase.name)
        figures = f"  {time:>{long}}  {_share(phase.share):>4}"
        branch, under = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _noted((branch, under), name, figures, fix, width)


def style_of(phase: str) -> str:
    """The colour of a phase; of two together, that of the first."""
    return f"phase.{phase.split('+')[0]}"


def _noted(
    branches: tuple[str, str], name: tuple[str, str], figures: str, fix: Fix | None, width: int
) -> Iterator[Line]:
    """A phase with its note beside it, or below it where there is no room."""
    branch, under = branches
    line = [(branch, "label"), name, (figures, "failed" if fix else "")]
    if fix is None:
        yield line
        return
    note, used = ARROW + accusation(fix), len(name[0]) + len(figures)
    room = width - len(branch) - used - 3
    if room < LEAST_NOTE:
        yield line
        for part in textwrap.wrap(note, max(width - 5, 10)):
            yield [(under, "label"), ("  " + part, "bad")]
        return
    parts = textwrap.wrap(note, room, break_on_hyphens=False, subsequent_indent="  ")
    yield [*line, ("   " + parts[0], "bad")]
    for part in parts[1:]:
        yield [(under, "label"), (" " * (used + 3) + part, "bad")]


def accusation(fix: Fix) -> str:
    """train.py:88 loss.item(), 3,000 times a step"""
    if fix.site is None:
        return clean(fix.title)
    words = [clean(f"{fix.site.place} {fix.site.code or fix.site.what}")]
    if fix.rule == "tokenizing_per_sample":
        words.append("one call per sample")
    elif fix.site.calls >= 1:
        words.append("once a step" if round(fix.site.calls) == 1 else f"{fix.site.calls:,.0f} times a step")
    return ", ".join(words)


def _first(report: Report, width: int) -> Iterator[Line]:
    """Fix train.py:88 first: read the loss once per log interval  → 2.0x (...)"""
    if not report.fixes:
        if report.phases:
            yield [("No rule finds anything to fix.", "good")]
        return
    fix = report.fixes[0]
    place = f"Fix {fix.site.place} first" if fix.site else "Fix first"
    gain = f"  → {gain_of(fix)} {AMDAHL}" if fix.speedup > 1 else ""
    yield from _wrapped(clean(f"{place}: {advice_of(fix)[0]}") + gain, width, "", "done")


def _verdict(report: Report, width: int) -> Iterator[Line]:
    counted = f" {report.steps:,} steps measured" if report.steps else ""
    if counted and report.left_out:
        counted += f", {report.left_out:,} of warm-up left out"
    text = clean(report.verdict) + (f"{counted}." if counted else "")
    if text:
        yield []
        yield from _wrapped(text, width, "", "title")


def _fix(rank: int, fix: Fix, width: int) -> Iterator[Line]:
    gain = f"   {gain_of(fix)}" if fix.speedup > 1 else ""
    number = f"{rank}. "
    indent = " " * len(number)
    yield from _wrapped(number + clean(fix.title) + gain, width, "", "title", hanging=indent)
    if fix.site:
        yield from _wrapped(_line_of(fix.site), width, indent, "place", hanging=indent + "  ")
    yield from _wrapped(clean(fix.evidence), width, indent, "label")
    arrow = "→ "
    for part in advice_of(fix):
        yield from _wrapped(arrow + part, width, indent, "good", hanging=indent + "  ")
        arrow = "  "


def _line_of(site: Site) -> str:
    return clean(f"{site.file}:{site.line}  {site.code or site.what}")


def advice_of(fix: Fix) -> list[str]:
    """What to do in a few words, then the details."""
    return [clean(part) for part in fix.advice.splitlines() if part.strip()] or [clean(fix.title)]


def gain_of(fix: Fix) -> str:
    return f"{fix.speedup:.1f}x" if fix.speedup >= 1.095 else f"{fix.speedup:.2f}x"


def clean(text: str) -> str:
    """One line without anything that could steer a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _wrapped(text: str, width: int, indent: str, style: str, hanging: str | None = None) -> Iterator[Line]:
    hanging = indent if hanging is None else hanging
    for part in textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=hanging,
        break_on_hyphens=False,
        drop_whitespace=True,
    ):
        yield [(part, style)]


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 9.95 else f"{ms:.1f}" if ms >= 0.095 else f"{ms:.2f}"


def _share(share: float) -> str:
    return "<1%" if 0 < share < TRIFLE else f"{share:.0%}"
