"""Parts of the demo's page that are drawn: the bars, the curves, the table of stages."""

from __future__ import annotations

from headrace.demo.findings import Findings, Way
from headrace.pages.charts import Curve, bars, lines
from headrace.pages.style import SERIES
from headrace.pages.text import amount, duration, number, percent, text

SLOW = "#d6455d"
HEADINGS = ("", "tokens/s", "a step", "steps", "tokens", "loss", "validation", "next token right")


def colours(found: Findings) -> dict[str, str]:
    return {found.slow.name: SLOW, **{way.name: SERIES[place] for place, way in enumerate(found.fast)}}


def speed(found: Findings) -> str:
    ways = (found.slow, *found.fast)
    drawn = bars(
        [(way.name, way.tokens_per_second, f"{way.tokens_per_second:,.0f} tokens/s") for way in ways],
        colours=colours(found),
    )
    head = "".join(f"<th{' class=n' if name else ''}>{text(name)}</th>" for name in HEADINGS)
    rows = "".join(_row(way) for way in ways)
    note = (
        "Tokens are those that the model learned from: padding does not count. The loss is that of the last steps. "
        "Evaluation is not in the rates; the slow way has none."
    )
    return (
        f'{drawn}<div class="scroll"><table><tr>{head}</tr>{rows}</table></div><p class="dim small">{text(note)} '
        f"{text(percent(found.padding))} of what the slow way computed was padding.</p>"
    )


def _row(way: Way) -> str:
    values = (
        f"{way.tokens_per_second:,.0f}",
        f"{way.report.step_ms:,.0f} ms",
        f"{way.steps:,}",
        amount(way.tokens),
        number(way.loss, ".3f"),
        number(way.val_loss, ".3f"),
        percent(way.accuracy),
    )
    return f"<tr><td>{text(way.name)}</td>{''.join(f'<td class=n>{text(value)}</td>' for value in values)}</tr>"


def curves(found: Findings) -> str:
    """The same losses twice: what a token teaches, and what a second does."""
    tones, ways = colours(found), (found.slow, *found.fast)

    def drawn(title: str, name: str) -> str:
        shown = [
            Curve(name=way.name, xs=getattr(way.curve, name), ys=way.curve.loss, colour=tones[way.name])
            for way in ways
            if way.curve.loss
        ]
        return lines(shown, title=title, note="training loss", x_name=name)

    note = (
        "Each is the loss on what was trained on. The slow way cuts every text and sees beginnings only, the fast way "
        "sees all of it: compare the two by speed, and the models of the fast way by loss."
    )
    pair = f'<div class="pair">{drawn("By tokens", "tokens")}{drawn("By seconds of training", "seconds")}</div>'
    return f"{pair}<p class='dim small'>{text(note)}</p>"


def costly_lines(found: Findings) -> str:
    """The lines of the slow way that cost time beside the model's own work."""
    rows = "".join(
        f"<tr><td class='n'>{site.line}</td><td class='words'><code>{text(site.code)}</code></td>"
        f"<td class='n wide'>{_times(site.calls)}</td><td class='n'>{number(site.ms, '.1f')} ms</td></tr>"
        for site in found.costly_lines[:6]
    )
    head = (
        "<tr><th class=n>line</th><th>slow_way.py</th><th class='n wide'>calls a step</th><th class=n>a step</th></tr>"
    )
    return f"<h3>Lines that cost time beside the model's own work</h3><table>{head}{rows}</table>" if rows else ""


def _times(calls: float) -> str:
    return f"{calls:,.0f}" if calls >= 0.5 else ""


def stages(found: Findings) -> str:
    rows = "".join(
        f"<tr><td>{text(stage['title'])}</td><td class='words wide'><code>{text(stage['command'])}</code></td>"
        f"<td class='n'>{text(duration(stage['seconds']))}</td></tr>"
        for stage in found.stages
    )
    machine = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.machine.items())
    note = (
        f"Every number on this page was measured in this run ({machine}). The first steps of each training are warm-up "
        "and are not in the rates."
    )
    return f"<table>{rows}</table><p class='dim small'>{text(note)}</p>"
