"""A report as one HTML file that needs nothing else: no script, nothing from elsewhere, light or dark, any width."""

from __future__ import annotations

from typing import Any

from headrace.diagnosis import page_charts
from headrace.diagnosis.page_charts import text
from headrace.diagnosis.report import PHASES, Fix, Report
from headrace.diagnosis.tree import accusation, advice_of, gain_of, headline, plain_tree, rows

COLOURS = dict(
    zip(
        PHASES,
        (
            "#d1495b",
            "#edae49",
            "#8d6cab",
            "#2e86ab",
            "#3fa796",
            "#6b8f3c",
            "#e07a3f",
            "#b56576",
            "#7f8c9b",
            "#c2a83e",
            "#9aa5b1",
        ),
        strict=True,
    )
)
DRAWN = {"timeline", "flame"}  # facts that are drawings, not figures

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--dim:#5d6878;--paper:#fff;--card:#f4f6f8;--line:#d9dee5;--bad:#b3261e;
--good:#1b6e3c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#9aa5b4;--paper:#14181e;--card:#1d232b;--line:#343c47;
--bad:#ff8a80;--good:#7ddc9b}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:0}p{margin:.4rem 0}
.dim{color:var(--dim)}.bad{color:var(--bad)}.good{color:var(--good)}
code,pre{font:13px/1.45 ui-monospace,monospace}
code{overflow-wrap:anywhere}pre{overflow-x:auto;background:var(--card);padding:.8rem;border-radius:6px}
table{border-collapse:collapse;width:100%}td{padding:.3rem .6rem .3rem 0;border-top:1px solid var(--line);
vertical-align:top}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td.words{overflow-wrap:anywhere}
.bar{height:.7rem;border-radius:2px;min-width:1px}
.fix{background:var(--card);border-radius:8px;padding:.8rem 1rem;margin:.7rem 0}
.fix header{display:flex;gap:1rem;justify-content:space-between;align-items:baseline}
.gain{font-size:1.2rem;font-weight:600;color:var(--good)}
figure{margin:1rem 0}svg{display:block;width:100%;height:9rem;background:var(--card)}
.axis{display:flex;justify-content:space-between;color:var(--dim);font-size:.85rem}
.legend span{display:inline-block;margin-right:1rem;font-size:.85rem}
.legend i{display:inline-block;width:.75rem;height:.75rem;margin-right:.35rem;border-radius:2px}
.flame{position:relative;overflow:hidden}
.flame div{position:absolute;height:19px;padding:0 4px;overflow:hidden;white-space:nowrap;font:12px/19px ui-monospace,
monospace;color:#1c2430;border-right:1px solid var(--paper);border-radius:2px}
.f0{background:#f2a65a}.f1{background:#f4b66a}.f2{background:#eec170}.f3{background:#e9c46a}.f4{background:#f0935b}
@media(max-width:34rem){td.wide{display:none}main{padding:1rem .7rem 3rem}
.phases tr{display:flex;flex-wrap:wrap;border-top:1px solid var(--line)}.phases td{border:0}
.phases td:first-child{flex:1}.phases td.words{flex-basis:100%;padding:0}}
"""


def page(report: Report) -> str:
    colours = "".join(f".{name}{{background:{colour};fill:{colour}}}" for name, colour in COLOURS.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(report.subject)}: diagnosis</title><style>{STYLE}{colours}</style></head><body><main>"
        f"{_top(report)}{_phases(report)}{_fixes(report)}"
        f"{page_charts.timeline(report.facts.get('timeline'))}{page_charts.flame(report.facts.get('flame'))}"
        f"{_figures(report.facts)}{_missing(report)}{_tree(report)}</main></body></html>\n"
    )


def _top(report: Report) -> str:
    steps = f"{report.steps:,} steps measured" if report.steps else ""
    left_out = f", {report.left_out:,} of warm-up left out" if report.left_out else ""
    return (
        f"<h1>{text(report.subject)}</h1><p><b>{text(headline(report))}</b></p>"
        f'<p>{text(report.verdict)}</p><p class="dim">{steps}{left_out}</p>'
    )


def _phases(report: Report) -> str:
    lines = []
    for phase, fix in rows(report):
        colour = phase.name if phase.name in COLOURS else "forward" if "+" in phase.name else "python"
        note = f'<span class="bad">← {text(accusation(fix))}</span>' if fix else ""
        lines.append(
            f'<tr><td>{text(phase.name.replace("_", " "))}</td><td class="n">{_ms(phase.ms)} ms</td>'
            f'<td class="n">{phase.share:.0%}</td><td class="wide" style="width:25%">'
            f'<div class="bar {colour}" style="width:{100 * min(max(phase.share, 0), 1):.1f}%"></div></td>'
            f'<td class="words">{note}</td></tr>'
        )
    return f'<section><h2>A step</h2><table class="phases">{"".join(lines)}</table></section>' if lines else ""


def _fixes(report: Report) -> str:
    if not report.fixes:
        return (
            "<section><h2>What to change</h2><p>No rule finds anything to fix.</p></section>" if report.phases else ""
        )
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
        f'<article class="fix"><header><h3>{rank}. {text(fix.title)}</h3>{gain}</header>{place}'
        f'<p class="dim">{text(fix.evidence)}</p><p class="good">→ {text(first)}</p>{details}</article>'
    )


def _figures(facts: dict[str, Any]) -> str:
    plain = {name: value for name, value in facts.items() if name not in DRAWN and not isinstance(value, (dict, list))}
    lines = "".join(
        f'<tr><td>{text(name.replace("_", " "))}</td><td class="words">{text(_figure(value))}</td></tr>'
        for name, value in plain.items()
    )
    return f"<section><h2>Figures</h2><table>{lines}</table></section>" if lines else ""


def _figure(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _missing(report: Report) -> str:
    lines = "".join(f"<li>{text(reason)}</li>" for reason in report.missing)
    return f'<section><h2>Not measured</h2><ul class="dim">{lines}</ul></section>' if lines else ""


def _tree(report: Report) -> str:
    return f"<section><details><summary>As text</summary><pre>{text(plain_tree(report))}</pre></details></section>"


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 9.95 else f"{ms:.2g}"
