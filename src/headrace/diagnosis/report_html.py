"""A report as a notebook shows it: the verdict, a step, and the fixes."""

from __future__ import annotations

from headrace.diagnosis.report import Fix, Report
from headrace.diagnosis.tree import accusation, advice_of, gain_of, headline, rows
from headrace.pages.bars import bars, shares
from headrace.pages.notebook import view
from headrace.pages.style import phase_colour
from headrace.pages.text import text

NARROW = "\u2007"  # a space as wide as a digit, so that numbers stand below each other


def report_html(report: Report) -> str:
    table = [(phase.name.replace("_", " "), phase, fix) for phase, fix in rows(report)]
    colours = {name: phase_colour(phase.name) for name, phase, _ in table}
    steps = bars(
        [(name, phase.share, f"{_ms(phase.ms)} ms{phase.share:6.0%}".replace(" ", NARROW)) for name, phase, _ in table],
        colours=colours,
        top=1.0,
    )
    divided = shares({phase.name: phase.share for phase in report.phases})
    body = f'<div class="hv-lead">{text(report.verdict)}</div>'
    body += f'<div class="hv-narrow">{divided}{steps}</div>' if table else ""
    body += "".join(_fix(rank, fix) for rank, fix in enumerate(report.fixes, 1))
    missing = "".join(f"<li>{text(reason)}</li>" for reason in report.missing)
    body += f'<ul class="hv-dim hv-small">{missing}</ul>' if missing else ""
    return view(report.subject, body, " · ".join(headline(report).split("   ")))


def _fix(rank: int, fix: Fix) -> str:
    gain = f" <b>{gain_of(fix)}</b>" if fix.speedup > 1 else ""
    place = f'<div class="hv-dim">{text(accusation(fix))}</div>' if fix.site else ""
    first, *more = advice_of(fix)
    details = f'<div class="hv-text">{text(chr(10).join(more))}</div>' if more else ""
    return (
        f'<div class="hv-fix"><div><b>{rank}. {text(fix.title)}</b>{gain}</div>{place}'
        f'<div class="hv-dim">{text(fix.evidence)}</div><div>→ {text(first)}</div>{details}</div>'
    )


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 9.95 else f"{ms:.2g}"
