"""The sections that every page about time has: the phases of a step, and what to change."""

from __future__ import annotations

from headrace.diagnosis.report import Fix, Report
from headrace.diagnosis.tree import accusation, advice_of, gain_of, rows
from headrace.pages.bars import shares
from headrace.pages.style import phase_colour
from headrace.pages.text import text

STYLE = """
.phases .swatch{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.5rem}
.phases .bar{height:.75rem;border-radius:2px;min-width:1px;margin-top:.42rem}
.phases td:first-child{white-space:nowrap}
.pair .phases td.wide{display:none}
.figures td:first-child{width:14rem}
.fix header{display:flex;gap:1rem;justify-content:space-between;align-items:baseline}
.fix p{margin:.35rem 0}
.gain{font-size:1.25rem;font-weight:650;color:var(--good);white-space:nowrap}
.flame{position:relative;overflow:hidden}
.flame div{position:absolute;height:19px;padding:0 4px;overflow:hidden;white-space:nowrap;font:12px/19px var(--mono);
color:#18202b;border-right:1px solid var(--paper);border-radius:2px}
.f0{background:#f2a65a}.f1{background:#f4b66a}.f2{background:#eec170}.f3{background:#e9c46a}.f4{background:#f0935b}
@media(max-width:40rem){.figures td:first-child{width:45%}
.phases tr{display:flex;flex-wrap:wrap;border-top:1px solid var(--line)}.phases td{border:0}
.phases td:first-child{flex:1}.phases td.words{flex-basis:100%;padding:0}}
"""


def phases(report: Report) -> str:
    table = phase_table(report)
    return f"<section><h2>A step</h2>{table}</section>" if table else ""


def phase_table(report: Report) -> str:
    """A line of shares, and a row for each phase with the fix that names it."""
    table = rows(report)
    if not table:
        return ""
    lines = []
    for phase, fix in table:
        colour = phase_colour(phase.name)
        note = f'<span class="bad">← {text(accusation(fix))}</span>' if fix else ""
        lines.append(
            f'<tr><td><i class="swatch" style="background:{colour}"></i>{text(phase.name.replace("_", " "))}</td>'
            f'<td class="n">{_ms(phase.ms)} ms</td><td class="n">{phase.share:.0%}</td>'
            f'<td class="wide" style="width:28%"><div class="bar" style="background:{colour};'
            f'width:{100 * min(max(phase.share, 0), 1):.1f}%"></div></td><td class="words">{note}</td></tr>'
        )
    divided = shares({phase.name: phase.share for phase in report.phases})
    return f'{divided}<table class="phases">{"".join(lines)}</table>'


def fixes(report: Report) -> str:
    if not report.fixes:
        nothing = "<section><h2>What to change</h2><p>No rule finds anything to fix.</p></section>"
        return nothing if report.phases else ""
    cards = "".join(_fix(rank, fix) for rank, fix in enumerate(report.fixes, 1))
    return f"<section><h2>What to change</h2>{cards}</section>"


def _fix(rank: int, fix: Fix) -> str:
    gain = f'<span class="gain">{gain_of(fix)}</span>' if fix.speedup > 1 else ""
    place = ""
    if fix.site:
        code = fix.site.code or fix.site.what
        place = f"<p><code>{text(fix.site.file)}:{fix.site.line}</code></p><pre>{text(code)}</pre>"
    first, *more = advice_of(fix)
    details = "".join(f"<p><code>{text(part)}</code></p>" for part in more)
    return (
        f'<article class="card fix"><header><h3>{rank}. {text(fix.title)}</h3>{gain}</header>{place}'
        f'<p class="dim">{text(fix.evidence)}</p><p class="good">→ {text(first)}</p>{details}</article>'
    )


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 9.95 else f"{ms:.2g}"
