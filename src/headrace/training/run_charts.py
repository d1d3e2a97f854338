"""The curves of runs as drawings: the same ones in a report, in a comparison and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.pages.axes import focused, plain
from headrace.pages.charts import Curve, lines, stacked
from headrace.pages.notebook import keys, view
from headrace.pages.style import SERIES
from headrace.pages.text import amount, duration, number, percent
from headrace.training.run_view import Run

BLUE, ORANGE = SERIES[:2]
SPANS = ("data_wait", "host_to_device", "forward", "backward", "optimizer", "sync", "evaluation", "checkpoint", "other")
LEAST = 0.005  # of the time; less has no word in the legend, but for the wait for data


def loss_chart(run: Run, **look: Any) -> str:
    """Mean of each interval, the range of single steps behind it, and the validations."""
    history = run.history
    steps, low, high = run.loss_range.columns()
    curves = [
        Curve(name="loss", xs=history["steps"], ys=history["train_loss"], colour=BLUE),
        Curve(name="single steps", xs=steps, ys=[None] * len(steps), low=low, high=high, colour=BLUE, look="band"),
        Curve(name="validation", xs=history["val_steps"], ys=history["val_loss"], colour=ORANGE, look="dots"),
    ]
    scale = focused(history["train_loss"], history["val_loss"], _later(low), _later(high))
    return lines(curves, title="Loss", form=lambda loss: f"{loss:.4g}", scale=scale, **look)


def _later(values: Sequence[float]) -> Sequence[float]:
    """Without the start, and without the rarest spikes."""
    kept = sorted(values[len(values) // 33 :])
    return kept[: max(1, round(0.99 * len(kept)))] if kept else []


def curve_chart(run: Run, column: str, title: str, *, form: Callable[[float], str] = plain, **look: Any) -> str:
    history = run.history
    return lines([Curve(name=title.lower(), xs=history["steps"], ys=history[column])], title=title, form=form, **look)


def anatomy_chart(run: Run, **look: Any) -> str:
    """Shares of the time over the steps, in the colours of phases."""
    history = run.history
    layers, means = _without_trifles(history["shares"], mean_shares(history))
    labels = {name: f"{name.replace('_', ' ')} {percent(means[name])}" for name in layers}
    look = {"title": "Shares of the time", "top": 1.0, "form": percent, "labels": labels, **look}
    return stacked(history["steps"], layers, **look)


def _without_trifles(
    shares: Mapping[str, Sequence[float | None]], means: Mapping[str, float]
) -> tuple[dict[str, Sequence[float | None]], dict[str, float]]:
    """What nobody would see joins "other"; the wait for data is always told, because it ought to be a trifle."""
    apart = [name for name in means if name != "other" and (means[name] >= LEAST or name == "data_wait")]
    rest = [values for name, values in shares.items() if name not in apart]
    layers: dict[str, Sequence[float | None]] = {name: shares[name] for name in apart}
    if rest:
        layers["other"] = [sum(value or 0.0 for value in values) for values in zip(*rest, strict=True)]
    return layers, {**means, "other": 1.0 - sum(means[name] for name in apart)}


def mean_shares(history: Mapping[str, Any]) -> dict[str, float]:
    """Of the whole run's time: intervals weigh as much as they took."""
    steps, seconds = history["steps"], history["seconds_per_step"]
    weights = [(step - before) * (each or 0.0) for before, step, each in zip([0, *steps], steps, seconds, strict=False)]
    total = sum(weights) or 1.0
    known = history["shares"]
    return {
        name: sum(weight * (value or 0.0) for weight, value in zip(weights, known[name], strict=True)) / total
        for name in (*SPANS, *sorted(known.keys() - set(SPANS)))
        if name in known
    }


def typical(values: Sequence[float | None]) -> float | None:
    """The median of what is known, without the first one if there are more: it has the warm-up in it."""
    known = sorted(value for value in (values[1:] if len(values) > 1 else values) if value is not None)
    return known[len(known) // 2] if known else None


def run_html(run: Run) -> str:
    """For a notebook: the numbers, the loss, the speed and where the time goes."""
    history = run.history
    rows = [
        ("status", run.status),
        ("step", f"{run.step:,} of {run.steps:,}"),
        ("loss", number(run.last.get("loss"), ".4f")),
        ("validation loss", number(run.evaluated.get("val_loss"), ".4f")),
        ("tokens", amount(run.last.get("tokens"))),
        ("tokens/s", amount(typical(history["tokens_per_second"]))),
        ("time", duration(run.seconds)),
    ]
    small: dict[str, Any] = {"high": "10rem"}
    charts = (
        loss_chart(run, **small)
        + curve_chart(run, "tokens_per_second", "Tokens per second", zero=True, **small)
        + anatomy_chart(run, **small)
    )
    told = [(name, value) for name, value in rows if value != "–"]
    return view(str(run.path), keys(told) + f'<div class="hv-pair">{charts}</div>', run.title)
