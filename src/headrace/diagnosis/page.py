"""A report as one HTML file that needs nothing else: no script, nothing from elsewhere, light or dark, any width."""

from __future__ import annotations

from typing import Any

from headrace.diagnosis import page_charts
from headrace.diagnosis.page_sections import STYLE, fixes, phases
from headrace.diagnosis.report import Report
from headrace.diagnosis.tree import headline, plain_tree
from headrace.pages.frame import document
from headrace.pages.text import number, text

DRAWN = {"timeline", "flame"}  # facts that are drawings, not figures


def page(report: Report) -> str:
    body = (
        _top(report)
        + phases(report)
        + fixes(report)
        + page_charts.timeline(report.facts.get("timeline"))
        + page_charts.flame(report.facts.get("flame"))
        + _figures(report.facts)
        + _missing(report)
        + f"<section><details><summary>As text</summary><pre>{text(plain_tree(report))}</pre></details></section>"
    )
    return document(f"{report.subject}: diagnosis", body, STYLE)


def _top(report: Report) -> str:
    steps = f"{report.steps:,} steps measured" if report.steps else ""
    figures = " · ".join(headline(report).split("   "))
    left_out = f", {report.left_out:,} of warm-up left out" if report.left_out else ""
    return (
        f'<header><p class="dim small">Diagnosis: {text(report.kind)}</p><h1>{text(report.subject)}</h1>'
        f'<p class="lead">{text(report.verdict)}</p>'
        f'<p><b>{text(figures)}</b> <span class="dim">{steps}{left_out}</span></p></header>'
    )


def _figures(facts: dict[str, Any]) -> str:
    plain = {name: value for name, value in facts.items() if name not in DRAWN and not isinstance(value, (dict, list))}
    lines = "".join(
        f'<tr><td class="dim">{text(name.replace("_", " "))}</td><td class="words">{text(_figure(value))}</td></tr>'
        for name, value in plain.items()
    )
    return f'<section><h2>Figures</h2><table class="figures">{lines}</table></section>' if lines else ""


def _figure(value: Any) -> str:
    return number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _missing(report: Report) -> str:
    lines = "".join(f"<li>{text(reason)}</li>" for reason in report.missing)
    return f'<section><h2>Not measured</h2><ul class="dim">{lines}</ul></section>' if lines else ""
