"""The page that `headrace report RUN` writes: one run in one HTML file, without script."""

from __future__ import annotations

import time
from typing import Any

from headrace.dashboard.run_sections import STYLE, config_table, happenings, keys, meta_line, samples, section
from headrace.diagnosis.page_sections import STYLE as DIAGNOSIS_STYLE
from headrace.diagnosis.page_sections import fixes, phase_table
from headrace.diagnosis.report import Report
from headrace.diagnosis.training import diagnose_run_folder
from headrace.diagnosis.tree import headline
from headrace.errors import HeadraceError
from headrace.files import human_bytes
from headrace.pages.charts import Curve, lines
from headrace.pages.frame import document
from headrace.pages.text import amount, duration, number, percent, text
from headrace.training.run_charts import anatomy_chart, curve_chart, loss_chart, typical
from headrace.training.run_view import Run
from headrace.version import __version__


def run_page(run: Run) -> str:
    diagnosis = diagnosis_of(run)
    body = (
        _top(run)
        + keys(_numbers(run))
        + section("", loss_chart(run, high="18rem"))
        + section("", pair(*_training_charts(run)))
        + _time(run, diagnosis)
        + section("What the model says of itself", pair(*_metric_charts(run)))
        + section("The machine", pair(*_machine_charts(run)))
        + samples(run)
        + happenings(run)
        + config_table(run.config)
        + footer(run.path)
    )
    return document(f"{run.name}: training run", body, DIAGNOSIS_STYLE + STYLE)


def diagnosis_of(run: Run) -> Report | None:
    """None before the first interval is over."""
    try:
        return diagnose_run_folder(run.path)
    except HeadraceError:
        return None


def pair(*charts: str) -> str:
    """Charts side by side where there is room."""
    drawn = [chart for chart in charts if chart]
    return f'<div class="pair">{"".join(drawn)}</div>' if drawn else ""


def footer(where: object) -> str:
    when = time.strftime("%d %B %Y, %H:%M UTC", time.gmtime())
    return f'<footer class="dim small">{text(where)}, as of {when}. Written by Headrace {text(__version__)}.</footer>'


def _top(run: Run) -> str:
    return (
        f'<header><p class="dim small">Training run</p><h1>{text(run.name)} {pill(run.status)}</h1>'
        f'<p class="lead">{text(run.title)}</p><p class="dim">{text(meta_line(run))}</p></header>'
    )


def pill(status: str) -> str:
    kind = {"finished": "good", "running": "accent", "failed": "bad", "stopped": "warn"}.get(status, "dim")
    return f'<span class="pill {kind}">{text(status)}</span>'


def _numbers(run: Run) -> list[tuple[str, str, str]]:
    """Name, value, and what else there is to say."""
    history, last, found = run.history, run.last, run.evaluated
    best = f"best {run.best[0]:.4f} at step {run.best[1]:,}" if run.best else ""
    best = "the best so far" if run.best and run.best[0] == found.get("val_loss") else best
    per_step = run.about.get("tokens_per_step")
    return [
        ("Steps", f"{run.step:,}", f"of {run.steps:,}" if run.steps else ""),
        ("Tokens", amount(last.get("tokens")), f"{per_step:,} a step" if per_step else ""),
        ("Loss", number(last.get("loss"), ".4f"), "last interval"),
        ("Validation loss", number(found.get("val_loss"), ".4f"), best),
        ("Perplexity", number(found.get("perplexity")), "validation"),
        ("Accuracy", percent(found.get("accuracy")), "of the next token"),
        ("Tokens/s", amount(typical(history["tokens_per_second"])), "median"),
        ("MFU", percent(typical(history["mfu"])), "of the device's peak"),
        ("Time", duration(run.seconds), "in steps"),
        ("Memory", human_bytes(int(last["memory"])) if last.get("memory") else "–", "of the process"),
    ]


def _training_charts(run: Run) -> list[str]:
    return [
        curve_chart(run, "tokens_per_second", "Tokens per second", zero=True),
        curve_chart(run, "learning_rate", "Learning rate", zero=True),
        curve_chart(run, "grad_norm", "Gradient norm", log=True),
        curve_chart(run, "mfu", "Model FLOPs utilization", form=percent, zero=True),
    ]


def _time(run: Run, diagnosis: Report | None) -> str:
    """The anatomy of a step, the verdict and what to change."""
    if diagnosis is None:
        return section("Where the time goes", anatomy_chart(run))
    figures = " · ".join(headline(diagnosis).split("   "))
    told = f'<p class="lead">{text(diagnosis.verdict)}</p><p class="dim">{text(figures)}</p>'
    drawn = f'<div class="pair">{anatomy_chart(run)}<div><h3>A step on average</h3>{phase_table(diagnosis)}</div></div>'
    return section("Where the time goes", told + drawn) + fixes(diagnosis)


def _metric_charts(run: Run) -> list[str]:
    history = run.history
    return [
        lines([Curve(name=name, xs=history["steps"], ys=values)], title=name.replace("_", " "))
        for name, values in sorted(history["metrics"].items())
    ]


def _machine_charts(run: Run) -> list[str]:
    history, steps = run.history, run.history["steps"]

    def drawn(title: str, form: Any, **columns: str) -> str:
        curves = [Curve(name=name, xs=steps, ys=history[column]) for name, column in columns.items()]
        return lines(curves, title=title, form=form, zero=True)

    return [
        drawn("Use of the processors", percent, CPU="cpu", GPU="gpu"),
        drawn("Memory", lambda size: human_bytes(int(size)).replace(".0 ", " "), process="memory", GPU="gpu_memory"),
    ]
