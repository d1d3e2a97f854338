"""Diagnose a run of `headrace train` from the events in its folder: nothing is run, and torch is not needed."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from headrace.diagnosis.evidence import Evidence, Stall
from headrace.diagnosis.report import PHASES, Fix, Report, phases_from
from headrace.diagnosis.rules import judge, verdict
from headrace.errors import UsageError
from headrace.telemetry import read_events

EVENTS = "events.jsonl"
PHASE_OF = {"sync": "host_sync", "other": "python"}  # spans that have another name
POINTS = 400  # of the timeline
LIVE = (
    "tokenize the text once, before training\n"
    "headrace prepare SOURCE --out data/NAME, then headrace train data/NAME instead of --text SOURCE"
)
PREPARED = (
    "find out whether the disk or the loader is slow\n"
    "headrace diagnose data DIR measures both; a dataset on a local disk, or small enough for memory, is not waited for"
)

EVALUATION = "evaluate a quarter as often, or on a quarter of the batches\n--eval-every N, --eval-batches N"
CHECKPOINT = (
    "write checkpoints less often\n"
    "--checkpoint-every N; they are written in the background, and one waits for the one before: is the disk slow?"
)


class Interval(NamedTuple):
    """What one event of kind step says about the time: milliseconds of all its steps, by phase."""

    step: int
    steps: int
    milliseconds: dict[str, float]
    event: dict[str, Any]

    @property
    def total(self) -> float:
        return sum(self.milliseconds.values())


class Run(NamedTuple):
    folder: Path
    about: dict[str, Any]  # the newest event of kind run
    intervals: list[Interval]
    left_out: int  # steps of warm-up
    losses: list[float]
    norms: list[float]
    val_loss: float | None


def diagnose(run: Any) -> Report:
    """Where the time of a run went, and what to change. Takes its folder, its Trainer or its TrainResult."""
    out = getattr(run, "out", None) or getattr(getattr(run, "config", None), "out", None)
    return diagnose_run_folder(Path(out or run))


def diagnose_run_folder(path: Path) -> Report:
    return report_of(read_run(Path(path)))


def report_of(run: Run) -> Report:
    evidence = gather(run)
    return Report(
        kind="training",
        subject=str(run.folder),
        verdict=verdict(evidence),
        steps=evidence.steps,
        left_out=run.left_out,
        step_ms=evidence.step_ms,
        tokens_per_second=evidence.tokens_per_second,
        cpu=evidence.cpu,
        gpu=evidence.gpu,
        phases=evidence.phases,
        fixes=[_for_headrace(fix, run) for fix in judge(evidence)],
        missing=evidence.missing,
        facts=facts(run, evidence),
    )


def read_run(path: Path) -> Run:
    folder = path.parent if path.name == EVENTS else path
    events = list(read_events(folder / EVENTS))
    if not events:
        raise UsageError(_no_events(folder))
    run = run_of(folder, events)
    if not run.intervals:
        raise UsageError(
            f"{folder / EVENTS} has no event of a step: the run ended, or still is, before its first --log-every steps."
        )
    return run


def run_of(folder: Path, events: list[dict[str, Any]]) -> Run:
    """The first interval of a run, and of one that goes on, is warm-up."""
    starts, intervals = list[Interval](), list[Interval]()
    about, warming = dict[str, Any](), True
    for event in events:
        if event.get("kind") == "run":
            about, warming = event, True
        elif interval := _interval(event):
            (starts if warming else intervals).append(interval)
            warming = False
    if not intervals:  # better a diagnosis with the warm-up than none
        starts, intervals = [], starts
    losses, norms = _losses(events)
    evals = [event.get("val_loss") for event in events if event.get("kind") == "eval"]
    return Run(folder, about, intervals, sum(s.steps for s in starts), losses, norms, evals[-1] if evals else None)


def _no_events(folder: Path) -> str:
    if not folder.exists():
        return f"{folder}: there is no such folder. Name the folder of a run, such as runs/NAME."
    return f"{folder} has no {EVENTS} with events: it is not the folder of a run. `headrace train --out DIR` makes one."


def _interval(event: dict[str, Any]) -> Interval | None:
    """On a GPU the device's own clock says where the time went: the host only launches, and waits elsewhere."""
    spans, steps = event.get("spans"), event.get("steps")
    if event.get("kind") != "step" or not isinstance(spans, dict) or not steps:
        return None
    found = dict(event.get("device_spans") or spans)
    if "device_spans" in event:
        waited = min(spans.get("data_wait", 0.0), found.get("host_to_device", 0.0))
        found["host_to_device"] = found.get("host_to_device", 0.0) - waited
        found["data_wait"] = found.get("data_wait", 0.0) + waited
    milliseconds = dict.fromkeys(PHASES, 0.0)
    for name, seconds in found.items():
        milliseconds[PHASE_OF.get(name, name if name in PHASES else "python")] += 1000 * seconds
    return Interval(event["step"], steps, milliseconds, event)


def _losses(events: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """By step: where a run went on from a checkpoint, what was done again counts."""
    losses: dict[int, float] = {}
    norms: dict[int, float] = {}
    for event in events:
        if event.get("kind") != "step":
            continue
        told = event.get("losses") or []
        for number, loss in enumerate(told, event["step"] - len(told) + 1):
            losses[number] = math.nan if loss is None else loss
        norm = event.get("grad_norm")
        norms[event["step"]] = math.nan if norm is None else norm
    return [losses[step] for step in sorted(losses)], [norms[step] for step in sorted(norms)]


def gather(run: Run) -> Evidence:
    steps = sum(interval.steps for interval in run.intervals)
    phases = {name: value / steps for name, value in _sums(run.intervals).items()}
    step_ms = sum(phases.values())
    per_step = run.about.get("tokens_per_step")
    return Evidence(
        step_ms=step_ms,
        steps=steps,
        phases=phases_from(phases),
        tokens_per_second=per_step / step_ms * 1000 if per_step and step_ms else None,
        cpu=_mean(run, "cpu"),
        gpu=_mean(run, "gpu"),
        stalls=_stalls(run),
        losses=run.losses,
        without_gradient=["all of them: the norm of the gradient is 0"] if _no_gradient(run) else [],
        missing=_missing(run),
    )


def _sums(intervals: list[Interval]) -> dict[str, float]:
    return {name: sum(interval.milliseconds[name] for interval in intervals) for name in PHASES}


def _stalls(run: Run) -> list[Stall]:
    """What took longer than a step; it happened before the first step of the interval that counts it."""
    usual = statistics.median(_training_ms(interval) for interval in run.intervals)
    return [
        Stall(step=interval.step - interval.steps, ms=interval.milliseconds[phase], phase=phase)
        for interval in run.intervals
        for phase in ("evaluation", "checkpoint")
        if interval.milliseconds[phase] > usual
    ]


def _training_ms(interval: Interval) -> float:
    """Of one step, without what interrupts it."""
    held_up = sum(interval.milliseconds[name] for name in ("evaluation", "checkpoint"))
    return (interval.total - held_up) / interval.steps


def _no_gradient(run: Run) -> bool:
    return bool(run.norms) and all(norm == 0 for norm in run.norms)


def _missing(run: Run) -> list[str]:
    reasons = ["Lines of code: events name none. `headrace diagnose run -- headrace train ...` does."]
    if not run.left_out:
        reasons.append(
            "Warm-up: there is one interval only, so it is counted in. Run more steps, or a lower --log-every."
        )
    return reasons


def _for_headrace(fix: Fix, run: Run) -> Fix:
    """The loop is ours, so the advice can be exact."""
    ours = {
        "waiting_for_data": LIVE if _is_live(run) else PREPARED,
        "evaluation_stalls": EVALUATION,
        "checkpoint_stalls": CHECKPOINT,
    }
    fix.advice = ours.get(fix.rule, fix.advice)
    return fix


def _is_live(run: Run) -> bool:
    data = (run.about.get("extra") or {}).get("data") or []
    return bool(data) and all(isinstance(name, str) for name in data)


def facts(run: Run, evidence: Evidence) -> dict[str, Any]:
    rates = sorted(_training_ms(interval) for interval in run.intervals)
    per_step = run.about.get("tokens_per_step") or 0
    model = run.about.get("model") or {}
    finite = [loss for loss in run.losses if math.isfinite(loss)]
    found = {
        "model": " ".join(str(model[key]) for key in ("name", "size") if model.get(key)),
        "parameters": run.about.get("parameters"),
        "device": run.about.get("device"),
        "datasets": run.about.get("datasets"),
        "mfu": _mean(run, "mfu"),
        "training_tokens_per_second": 1000 * per_step / statistics.fmean(rates) if per_step and rates[0] else None,
        "fastest_step_ms": rates[0],
        "slowest_step_ms": rates[-1],
        "longest_wait_ms": 1000 * max((i.event.get("max_wait") or 0.0 for i in run.intervals), default=0.0),
        "memory": max((i.event.get("memory") or 0 for i in run.intervals), default=0),
        "first_loss": finite[0] if finite else None,
        "last_loss": finite[-1] if finite else None,
        "val_loss": run.val_loss,
        "skipped_steps": sum(i.event.get("skipped") or 0 for i in run.intervals),
        "timeline": timeline(run.intervals, [phase.name for phase in evidence.phases]),
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def timeline(intervals: list[Interval], names: list[str]) -> dict[str, Any]:
    """Milliseconds of a step by phase over the run, in no more points than a page can show."""
    size = math.ceil(len(intervals) / POINTS)
    groups = [intervals[at : at + size] for at in range(0, len(intervals), size)]
    steps = [sum(interval.steps for interval in group) for group in groups]
    sums = [_sums(group) for group in groups]
    return {
        "steps": [group[-1].step for group in groups],
        "phases": {
            name: [round(found[name] / count, 4) for found, count in zip(sums, steps, strict=True)] for name in names
        },
    }


def _mean(run: Run, name: str) -> float | None:
    """Weighted by the time of the intervals that have it."""
    known = [
        (interval.event[name], interval.total) for interval in run.intervals if interval.event.get(name) is not None
    ]
    weight = sum(total for _, total in known)
    return sum(value * total for value, total in known) / weight if weight else None
