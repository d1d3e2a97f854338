"""Findings: what a demo has measured, read out of the files that its stages wrote, and out of nothing else."""

from __future__ import annotations

import math
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from headrace.demo import plan
from headrace.demo.commands import NEXT, compare_command, shown
from headrace.demo.folder import DemoFolder
from headrace.diagnosis.compare import Comparison, compare_reports
from headrace.diagnosis.report import COMPUTE, Report, Site, load_report
from headrace.storage import read_metadata
from headrace.telemetry import read_events

SCRIPT = "slow_way.py"
WINDOW = 10  # steps that the loss of the slow way is averaged over, about as long as intervals of the fast way


class Curve(msgspec.Struct, kw_only=True):
    """A loss over training; tokens and seconds are those of training up to each point."""

    tokens: list[int] = []
    seconds: list[float] = []
    loss: list[float] = []


class Way(msgspec.Struct, kw_only=True):
    """One training: the slow way, or the fast way of a model."""

    name: str
    steps: int
    tokens: int  # that the model learned from, padding left out
    seconds: float  # of training, evaluation included
    tokens_per_second: float  # while training, without evaluation and warm-up
    loss: float
    curve: Curve
    report: Report
    parameters: int | None = None
    val_loss: float | None = None
    bits_per_byte: float | None = None
    accuracy: float | None = None


class Sample(msgspec.Struct, kw_only=True):
    model: str
    prompt: str
    text: str
    seconds: float


class Findings(msgspec.Struct, kw_only=True):
    folder: str
    page: str
    machine: dict[str, Any]
    stages: list[dict[str, Any]]
    seconds: float
    data: dict[str, Any]
    slow: Way
    fast: list[Way]  # the first is the model of the slow way
    factor: float  # tokens/s of the fast way over those of the slow way
    costly_lines: list[Site]  # of the slow way, beside the model's own work: the dearest first
    host_reads_per_step: float  # of the slow way
    padding: float  # share of what the slow way computed
    comparison: Comparison
    samples: list[Sample]
    compare_command: str
    next_commands: list[str]


def gather(folder: DemoFolder) -> Findings:
    about = folder.read_about()
    slow, fast = slow_way(folder), [fast_way(folder, model) for model in plan.MODELS]
    return Findings(
        folder=str(folder.path),
        page=str(folder.page),
        machine=about["machine"],
        stages=about["stages"],
        seconds=about["seconds"],
        data=data_facts(folder),
        slow=slow,
        fast=fast,
        factor=fast[0].tokens_per_second / slow.tokens_per_second,
        costly_lines=costly_lines(slow.report),
        host_reads_per_step=sum(site.calls for site in slow.report.phase("host_sync").sites),
        padding=padding_of(folder),
        comparison=compare_reports(slow.report, fast[0].report),
        samples=msgspec.json.decode(folder.samples.read_bytes(), type=list[Sample]),
        compare_command=shown(compare_command(folder)),
        next_commands=[shown(command) for command in NEXT],
    )


def costly_lines(report: Report) -> list[Site]:
    """What each line of the script cost in a step, all phases but those of the model added up."""
    found: dict[int, Site] = {}
    for phase in report.phases:
        for site in phase.sites if phase.name not in COMPUTE else ():
            if Path(site.file).name != SCRIPT:
                continue
            one = found.setdefault(site.line, Site(file=site.file, line=site.line, code=site.code))
            one.ms, one.calls, one.what = one.ms + site.ms, max(one.calls, site.calls), one.what or site.what
    return sorted((site for site in found.values() if site.ms > 0), key=lambda site: -site.ms)


def data_facts(folder: DemoFolder) -> dict[str, Any]:
    metadata = read_metadata(folder.data)
    tokens = metadata.total_tokens + metadata.val_tokens
    return {
        "source": plan.SOURCE,
        "tokens": tokens,
        "val_tokens": metadata.val_tokens,
        "documents": metadata.documents + metadata.val_documents,
        "text_bytes": metadata.text_bytes,
        "bytes_per_token": metadata.text_bytes / max(tokens, 1),
        "vocabulary": metadata.vocab_size,
        "disk_bytes": sum(shard.bytes for shard in metadata.shards),
    }


def slow_way(folder: DemoFolder) -> Way:
    """Its own list of steps has the tokens without padding, which nobody else knows."""
    report = load_report(folder.slow_report)
    steps: list[dict[str, float]] = msgspec.json.decode(folder.slow_steps.read_bytes())
    counted = steps[report.left_out :] or steps
    tokens, seconds = sum(step["tokens"] for step in counted), sum(step["seconds"] for step in counted)
    return Way(
        name="slow way",
        steps=len(steps),
        tokens=int(sum(step["tokens"] for step in steps)),
        seconds=sum(step["seconds"] for step in steps),
        tokens_per_second=tokens / seconds,
        loss=mean_loss(steps[-WINDOW:]),
        curve=slow_curve(steps),
        report=report,
    )


def slow_curve(steps: list[dict[str, float]]) -> Curve:
    tokens = list(accumulate(int(step["tokens"]) for step in steps))
    seconds = list(accumulate(step["seconds"] for step in steps))
    ends = list(range(plan.LOG_EVERY - 1, len(steps), plan.LOG_EVERY))
    return Curve(
        tokens=[tokens[at] for at in ends],
        seconds=[seconds[at] for at in ends],
        loss=[mean_loss(steps[at - plan.LOG_EVERY + 1 : at + 1]) for at in ends],
    )


def mean_loss(steps: list[dict[str, float]]) -> float:
    return sum(step["loss"] for step in steps) / max(len(steps), 1)


def padding_of(folder: DemoFolder) -> float:
    """Share of what the model computed that nobody learned from."""
    steps: list[dict[str, float]] = msgspec.json.decode(folder.slow_steps.read_bytes())
    return 1 - sum(step["tokens"] for step in steps) / sum(step["computed"] for step in steps)


def training_rate(events: list[dict[str, Any]]) -> float:
    """Tokens a second while weights are learned: the slow way does not evaluate either. Warm-up is left out."""
    counted = events[1:] or events
    tokens = counted[-1]["tokens"] - (events[0]["tokens"] if len(events) > 1 else 0)
    held_up = sum(event["spans"]["evaluation"] + event["spans"]["checkpoint"] for event in counted)
    return float(tokens / (sum(event["seconds"] for event in counted) - held_up))


def fast_way(folder: DemoFolder, model: str) -> Way:
    events = list(read_events(folder.run(model) / "events.jsonl"))
    report = load_report(folder.diagnosis(model))
    steps = [event for event in events if event["kind"] == "step"]
    evaluated: dict[str, Any] = next((event for event in reversed(events) if event["kind"] == "eval"), {})
    about = next(event for event in events if event["kind"] == "run")
    val_loss = evaluated.get("val_loss")
    return Way(
        name=model,
        steps=steps[-1]["step"],
        tokens=steps[-1]["tokens"],
        seconds=sum(event["seconds"] for event in steps),
        tokens_per_second=training_rate(steps),
        loss=steps[-1]["loss"],
        curve=Curve(
            tokens=[event["tokens"] for event in steps],
            seconds=list(accumulate(event["seconds"] for event in steps)),
            loss=[event["loss"] for event in steps],
        ),
        report=report,
        parameters=about.get("parameters"),
        val_loss=val_loss,
        bits_per_byte=val_loss / math.log(2) / data_facts(folder)["bytes_per_token"] if val_loss else None,
        accuracy=evaluated.get("accuracy"),
    )
