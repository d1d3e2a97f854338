"""Several runs in one report: their curves over each other, their numbers side by side, what was set differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.dashboard.compare import differences
from headrace.dashboard.run_page import diagnosis_of, footer, pair, pill
from headrace.dashboard.run_sections import STYLE, section, shown
from headrace.pages.axes import Scale, focused, plain
from headrace.pages.charts import Curve, lines, shares
from headrace.pages.frame import document
from headrace.pages.style import SERIES, phase_colour
from headrace.pages.text import amount, duration, number, percent, text
from headrace.training.run_charts import mean_shares, typical
from headrace.training.run_view import Run

OWN = """
.runs .swatch{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;margin-right:.5rem}
.runs td.best{font-weight:650;color:var(--good)}
.runs td:first-child{min-width:11rem;overflow-wrap:anywhere}
.apart td{font:.84rem/1.6 var(--mono);min-width:7.5rem}.apart th{overflow-wrap:anywhere}
.apart td:first-child{font:inherit;color:var(--dim);white-space:nowrap}
.spent{display:grid;grid-template-columns:minmax(6rem,16rem) 1fr;gap:.7rem 1.2rem;overflow-wrap:anywhere}
@media(max-width:40rem){.spent{grid-template-columns:1fr;gap:.2rem}.spent>:nth-child(even){margin-bottom:.9rem}
.runs td:first-child{min-width:9rem}}
"""


def compare_page(runs: Sequence[Run]) -> str:
    names = names_of(runs)
    title = f"{len(runs)} runs compared"
    body = (
        f'<header><p class="dim small">Training runs</p><h1>{title}</h1></header>'
        + section("Numbers", _table(runs, names))
        + section("Curves", _loss(runs, names) + "<br>" + pair(*_charts(runs, names)))
        + section("Where the time goes", _spent(runs, names))
        + _differences(runs, names)
        + footer(", ".join(str(run.path) for run in runs))
    )
    return document(title, body, STYLE + OWN)


def names_of(runs: Sequence[Run]) -> list[str]:
    """The folders' names, with as many of the folders above as it takes to tell them apart."""
    paths = [run.path.resolve().parts for run in runs]
    for depth in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path[-1]} ({place})" for place, path in enumerate(paths, 1)]


def _colour(place: int) -> str:
    return SERIES[place % len(SERIES)]


def _table(runs: Sequence[Run], names: Sequence[str]) -> str:
    titles = ("Run", "", "Steps", "Loss", "Validation", "Best", "Tokens", "Tokens/s", "MFU", "Data wait", "Time")
    head = "".join(f"<th{' class=n' * (place > 1)}>{title}</th>" for place, title in enumerate(titles))
    best = min((run.best[0] for run in runs if run.best), default=None)
    rows = "".join(_row(run, name, place, best) for place, (run, name) in enumerate(zip(runs, names, strict=True)))
    return f'<div class="scroll"><table class="runs"><tr>{head}</tr>{rows}</table></div>'


def _row(run: Run, name: str, place: int, best: float | None) -> str:
    history, own = run.history, run.best[0] if run.best else None
    cells = [
        f"{run.step:,}",
        number(run.last.get("loss"), ".4f"),
        number(run.evaluated.get("val_loss"), ".4f"),
        number(own, ".4f"),
        amount(run.last.get("tokens")),
        amount(typical(history["tokens_per_second"])),
        percent(typical(history["mfu"])),
        percent(typical(history["data_wait_share"])),
        duration(run.seconds),
    ]
    told = "".join(
        f'<td class="n{" best" * (column == 3 and own is not None and own == best)}">{text(cell)}</td>'
        for column, cell in enumerate(cells)
    )
    return (
        f'<tr><td><i class="swatch" style="background:{_colour(place)}"></i>{text(name)}'
        f'<div class="dim small">{text(run.title)}</div></td><td>{pill(run.status)}</td>{told}</tr>'
    )


def _curves(runs: Sequence[Run], names: Sequence[str], column: str, over: str = "steps") -> list[Curve]:
    dots = column == "val_loss"
    return [
        Curve(
            name=name,
            xs=run.history[over],
            ys=run.history[column],
            colour=_colour(place),
            look="dots" if dots and len(run.history[over]) < 2 else "line",
        )
        for place, (run, name) in enumerate(zip(runs, names, strict=True))
    ]


def _loss(runs: Sequence[Run], names: Sequence[str]) -> str:
    scales = [focused(run.history["train_loss"]) for run in runs if any(run.history["train_loss"])]
    if not scales:
        return ""
    scale = scales[0]._replace(low=min(s.low for s in scales), high=max(s.high for s in scales))
    return lines(_curves(runs, names, "train_loss"), title="Loss", form=_loss_form, scale=scale, high="18rem")


def _loss_form(loss: float) -> str:
    return f"{loss:.4g}"


def _charts(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    def drawn(title: str, column: str, form: Callable[[float], str] = plain, **look: Any) -> str:
        return lines(_curves(runs, names, column), title=title, form=form, legend=False, **look)

    validation = _curves(runs, names, "val_loss", over="val_steps")
    return [
        lines(validation, title="Validation loss", form=_loss_form, legend=False),
        drawn("Tokens per second", "tokens_per_second", zero=True),
        drawn("Learning rate", "learning_rate", zero=True),
        drawn("Gradient norm", "grad_norm", log=True),
        drawn("Model FLOPs utilization", "mfu", percent, zero=True),
        drawn("Wait for data", "data_wait_share", percent, scale=_waits(runs)),
    ]


def _waits(runs: Sequence[Run]) -> Scale:
    """At least to 1%: of what is next to nothing the course says nothing."""
    most = max((share or 0.0 for run in runs for share in run.history["data_wait_share"]), default=0.0)
    return Scale(0.0, max(0.01, 1.05 * most))


def _spent(runs: Sequence[Run], names: Sequence[str]) -> str:
    lines_, seen = [], dict[str, None]()
    for run, name in zip(runs, names, strict=True):
        found = mean_shares(run.history)
        seen |= dict.fromkeys(phase for phase, share in found.items() if share >= 0.005)
        diagnosis = diagnosis_of(run)
        verdict = f'<div class="dim small">{text(diagnosis.verdict)}</div>' if diagnosis else ""
        lines_.append(f"<div>{text(name)}</div><div>{shares(found)}{verdict}</div>")
    legend = "".join(
        f'<span><i style="background:{phase_colour(phase)}"></i>{text(phase.replace("_", " "))}</span>'
        for phase in seen
    )
    return f'<div class="spent">{"".join(lines_)}</div><div class="hr-legend">{legend}</div>' if seen else ""


def _differences(runs: Sequence[Run], names: Sequence[str]) -> str:
    found = differences([run.config for run in runs])
    if not found:
        return section("Config", "<p>All settings are the same.</p>")
    head = "".join(f"<th>{text(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{text(row['name'])}</td>{''.join(f'<td>{text(_shown(value))}</td>' for value in row['values'])}</tr>"
        for row in found
    )
    table = f'<div class="scroll"><table class="apart"><tr><th></th>{head}</tr>{rows}</table></div>'
    return section("What was set differently", table)


def _shown(value: Any) -> str:
    """A dash where a run has no such setting."""
    return "–" if value is None else shown(value)
