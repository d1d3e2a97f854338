"""The page of a demo: one file, no script, nothing from elsewhere. All that it says is in Findings."""

from __future__ import annotations

from headrace.demo.findings import Findings, Sample, Way
from headrace.demo.page_parts import costly_lines, curves, speed, stages
from headrace.demo.trees import head_of, plain
from headrace.diagnosis.compare import Outcome
from headrace.diagnosis.report import Fix
from headrace.diagnosis.tree import advice_of, gain_of
from headrace.pages.charts import shares
from headrace.pages.frame import document
from headrace.pages.style import phase_colour
from headrace.pages.text import amount, duration, number, text

STYLE = """
.times{font-size:2.1rem;line-height:1.15;font-weight:700;letter-spacing:-.02em}
.tree pre{font-size:.74rem;line-height:1.5}
.hr-bars{margin-bottom:1rem}
.next li{margin:.2rem 0}
.sample pre b{font-weight:600;color:var(--accent)}
"""
TREE_WIDTH = 56  # columns; two stand beside each other, and one nearly fits a phone
LEAST_GAIN = 1.05


def page(found: Findings) -> str:
    parts = (
        _top(found),
        _section("Before and after", speed(found)),
        _section("Where a step's time went", _trees(found)),
        _section("What was fixed", _fixes(found)),
        _section("What the models learned", curves(found)),
        _section("What they write", _samples(found)),
        _section("Next, on your own data", _next(found)),
        _section("How this was measured", stages(found)),
    )
    return document(f"Headrace demo: {headline(found)}", "\n".join(parts), STYLE)


def headline(found: Findings) -> str:
    """Whatever was measured, also if it is not what one hopes for."""
    factor = found.factor
    if factor < LEAST_GAIN:
        return f"No gain in this run: {factor:.2f} times as fast"
    times = f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"
    return f"{times} times faster on the same machine"


def _section(title: str, body: str) -> str:
    return f"<h2>{text(title)}</h2>\n{body}" if body else ""


def _top(found: Findings) -> str:
    first = found.fast[0]
    figures = [
        ("slow way", f"{found.slow.tokens_per_second:,.0f}", "tokens/s"),
        ("fast way", f"{first.tokens_per_second:,.0f}", "tokens/s, the same model"),
        *((way.name, number(way.bits_per_byte, ".2f"), "bits a byte, validation") for way in found.fast),
        ("from nothing", duration(found.seconds), "the whole demo"),
    ]
    cells = "".join(
        f'<div><dt>{text(name)}</dt><dd>{text(value)}</dd><span class="note">{text(note)}</span></div>'
        for name, value, note in figures
    )
    lead = (
        f"{amount(found.data['tokens'])} tokens of {found.data['source']} were prepared, and two models of "
        f"{amount(first.parameters)} parameters trained on them, offline, on {found.machine['cores']} cores. "
        "The slow way is a script as guides write it; the fast way is the same model on prepared data."
    )
    return (
        f'<p class="dim">headrace demo</p><h1 class="times">{text(headline(found))}</h1>'
        f'<p class="lead">{text(lead)}</p><dl class="keys">{cells}</dl>{_busy(found)}'
    )


def _busy(found: Findings) -> str:
    load, cores = found.machine.get("load_at_start"), found.machine.get("cores") or 1
    if load is None or load < 0.5 * cores:
        return ""
    return (
        f'<p class="warn">Other programs were at work when the demo began (load {load:.1f} on {cores} cores), so all '
        "rates are lower than on an idle machine.</p>"
    )


def _trees(found: Findings) -> str:
    halves = [_tree("The slow way", found.slow), _tree("The fast way", found.fast[0])]
    others = "".join(_tree(f"The fast way, {way.name}", way) for way in found.fast[1:])
    more = f"<details><summary>The other model</summary>{others}</details>" if others else ""
    return f'<div class="pair tree">{"".join(halves)}</div>{more}'


def _tree(title: str, way: Way) -> str:
    parts = {phase.name: phase.ms for phase in way.report.phases}
    return (
        f"<div><h3>{text(title)}</h3>{shares(parts, colours={name: phase_colour(name) for name in parts})}"
        f"<pre>{text(plain(head_of(way.report, TREE_WIDTH)))}</pre></div>"
    )


def _fixes(found: Findings) -> str:
    outcomes = {outcome.rule: outcome for outcome in found.comparison.fixes}
    cards = [_fix(fix, outcomes.get(fix.rule)) for fix in found.slow.report.fixes]
    cards.append(costly_lines(found))
    reads = (
        f"<p class='dim'>{found.host_reads_per_step:,.0f} times a step the slow way asks for a number. On a GPU each "
        "of them makes it wait for all that it was told to do; <code>headrace diagnose sync</code> finds such lines "
        "without a GPU.</p>"
    )
    verdict = f"<p>{text(found.comparison.verdict)}</p><pre class='wrap'>{text(found.compare_command)}</pre>"
    return f"{''.join(cards)}{reads}{verdict}"


def _fix(fix: Fix, outcome: Outcome | None) -> str:
    gain = f" <span class='good'>{text(gain_of(fix))} predicted</span>" if fix.speedup > 1 else ""
    state = ' <span class="pill good">gone</span>' if outcome and outcome.gone else ""
    code = f"<pre class='wrap'>{text(fix.site.place)}  {text(fix.site.code)}</pre>" if fix.site else ""
    advice = "".join(f"<p>{text(part)}</p>" for part in advice_of(fix)[:1])
    return (
        f"<div class='card'><h3>{text(fix.title)}{gain}{state}</h3>{code}"
        f"<p class='dim'>{text(fix.evidence)}</p>{advice}</div>"
    )


def _samples(found: Findings) -> str:
    by_prompt: dict[str, list[Sample]] = {}
    for sample in found.samples:
        by_prompt.setdefault(sample.prompt, []).append(sample)
    rows = "".join(f'<div class="pair sample">{"".join(map(_sample, group))}</div>' for group in by_prompt.values())
    told = ", ".join(f"{way.name} {duration(way.seconds)} and {amount(way.tokens)} tokens" for way in found.fast)
    return (
        f"<p class='dim'>The prompt is coloured, the rest is the model's. So long did they learn: {text(told)}. "
        f"Expect the form of Python, not its sense.</p>{rows}"
    )


def _sample(sample: Sample) -> str:
    return (
        f"<div><h3>{text(sample.model)}</h3>"
        f"<pre class='wrap'><b>{text(sample.prompt)}</b>{text(sample.text)}</pre></div>"
    )


def _next(found: Findings) -> str:
    said = ("see where your script's time goes", "prepare your text, once", "train on it")
    lines = "".join(
        f"<li><pre class='wrap'>{text(command)}</pre><span class='dim'>{text(why)}</span></li>"
        for command, why in zip(found.next_commands, said, strict=True)
    )
    return f'<ol class="next">{lines}</ol>'
