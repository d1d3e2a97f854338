"""Sections of a report that are text: numbers, samples, what happened, the config."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.pages.text import text
from headrace.training.run_view import Run

OLDER = 8  # groups of samples below the newest
LONGEST = 4000  # characters of one text
SHOWN = 60  # lines of what happened

STYLE = """
.accent{color:var(--accent)}
header .pill{margin-left:.4rem}
.sample{padding:.2rem 0 .9rem;border-top:1px solid var(--line)}
.sample:first-of-type{border-top:0}
.sample h4{margin:.6rem 0 .2rem;font-size:.8rem;font-weight:500;color:var(--dim)}
.sample pre{margin:0;max-height:16rem;overflow:auto}
.sample .prompt{background:none;padding:0;color:var(--dim)}
.sample .two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:0 1.2rem}
.config{columns:22rem;column-gap:2.5rem;margin:0}
.config div{display:flex;justify-content:space-between;gap:1rem;padding:.26rem 0;border-bottom:1px solid var(--line);
break-inside:avoid}
.config dt{color:var(--dim)}.config dd{margin:0;text-align:right;overflow-wrap:anywhere;font:.84rem/1.6 var(--mono)}
.config h3{margin:1rem 0 .2rem;break-after:avoid}
.happened td:first-child{white-space:nowrap;width:1%}
footer{margin-top:3rem}
"""


def section(title: str, body: str) -> str:
    if not body:
        return ""
    return f"<section>{f'<h2>{text(title)}</h2>' if title else '<br>'}{body}</section>"


def keys(rows: Sequence[tuple[str, str, str]]) -> str:
    cells = "".join(
        f'<div><div class="name">{text(name)}</div><div class="value">{text(value)}</div>'
        f'<div class="note">{text(note)}</div></div>'
        for name, value, note in rows
        if value != "–"
    )
    return f'<div class="keys">{cells}</div>'


def meta_line(run: Run) -> str:
    """cpu, bf16, 4 x 256 tokens, from 16 Nov 2026 05:16 to 05:37 UTC"""
    train = run.about.get("config") or {}
    told = [run.about.get("device"), train.get("precision"), train.get("optimizer")]
    return ", ".join([*(str(part) for part in told if part), *_when(run.started, run.updated)])


def _when(begin: float | None, end: float | None) -> list[str]:
    if begin is None or end is None:
        return []
    first, last = time.gmtime(begin), time.gmtime(end)
    same = first[:3] == last[:3]
    until = time.strftime("%H:%M" if same else "%d %b %Y %H:%M", last)
    return [f"{time.strftime('%d %b %Y %H:%M', first)} to {until} UTC"]


def samples(run: Run) -> str:
    """The newest texts open, some older ones folded."""
    groups = [(step, list(group)) for step, group in itertools.groupby(run.samples, key=lambda sample: sample["step"])]
    if not groups:
        return ""
    (step, newest), older = groups[-1], groups[-2::-1]
    picked = older[:: max(1, -(-len(older) // OLDER))]
    folded = "".join(
        f"<details><summary>Step {number:,}</summary>{''.join(map(_sample, group))}</details>"
        for number, group in picked
        if isinstance(number, int)
    )
    note = f'<p class="dim small">Step {text(f"{step:,}" if isinstance(step, int) else step)}</p>'
    return section("What it writes", note + "".join(map(_sample, newest)) + folded)


def _sample(sample: Mapping[str, Any]) -> str:
    prompt, expected, predicted = (_cut(sample.get(name)) for name in ("prompt", "expected", "predicted"))
    return (
        f'<div class="sample"><h4>Prompt</h4><pre class="wrap prompt">{text(prompt)}</pre>'
        f'<div class="two"><div><h4>Expected</h4><pre class="wrap">{text(expected)}</pre></div>'
        f'<div><h4>Predicted</h4><pre class="wrap">{text(predicted)}</pre></div></div></div>'
    )


def _cut(value: Any) -> str:
    told = "" if value is None else str(value)
    return told if len(told) <= LONGEST else told[:LONGEST] + " ..."


def happenings(run: Run) -> str:
    """Messages, going on, steps left out, checkpoints; the newest lines if there are many."""
    lines = [("", f"Went on from step {step:,}") for step in run.resumes]
    if run.skipped:
        lines.append(("", f"{run.skipped:,} steps were left out: their loss or gradient was no number"))
    if run.checkpoints:
        lines.append(("", _checkpoints(run.checkpoints)))
    lines += [(_clock(message["t"]), message["text"]) for message in run.messages[-SHOWN:]]
    rows = "".join(
        f'<tr><td class="dim">{text(when)}</td><td class="words">{text(what)}</td></tr>' for when, what in lines
    )
    return section("What happened", f'<table class="happened">{rows}</table>' if rows else "")


def _checkpoints(steps: Sequence[int]) -> str:
    shown = ", ".join(f"{step:,}" for step in steps[-6:])
    return f"{len(steps):,} checkpoint{'s' * (len(steps) > 1)}, {'the last ' * (len(steps) > 6)}at step {shown}"


def _clock(when: Any) -> str:
    return time.strftime("%d %b %H:%M:%S", time.gmtime(when)) if isinstance(when, (int, float)) else ""


def config_table(config: Mapping[str, Any]) -> str:
    """In groups by the first part of the name."""
    parts = []
    for group, names in itertools.groupby(sorted(config), key=lambda name: name.partition(".")[0]):
        rows = "".join(
            f"<div><dt>{text(name.partition('.')[2] or name)}</dt><dd>{text(shown(config[name]))}</dd></div>"
            for name in names
        )
        parts.append(f'<h3>{text(group)}</h3><dl class="config">{rows}</dl>')
    return section("Config", "".join(parts))


def shown(value: Any) -> str:
    """A setting, short."""
    if isinstance(value, str):
        return value
    told = json.dumps(value, ensure_ascii=False, default=str)
    return told if len(told) <= 300 else told[:300] + " ..."
