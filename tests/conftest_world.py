"""A small world for the end-to-end tests: runs that went well and badly, text that would like to be script, data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conftest_dashboard import a_run, append, rows, run_event, sample_event, write_run
from conftest_pipeline import write_jsonl
from headrace import prepare

HOSTILE = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>"
HOSTILE_NAME = "<img src=x onerror=alert(1)>,&lt;b"  # a folder: no slash; the comma parts names in an address
LINK = "javascript:alert(3)"
TALES = [f"Tale {i} begins. " + "The mill turns, the water runs. " * (i % 9) + f"So ends {i}." for i in range(60)]


def write_world(folder: Path) -> None:
    write_runs(folder / "runs")
    write_data(folder)


def write_runs(runs: Path) -> None:
    write_run(runs / "alpha", map(_fed, a_run(1000)), lr=3e-4)
    busy = ({**event, "mfu": 4.67} if event["kind"] == "step" else event for event in a_run(600))
    write_run(runs / "group" / "beta", busy, lr=1e-3, model={"name": "transformer", "size": "small"})
    write_run(runs / "gamma", a_run(300), lr=3e-4)
    append(runs / "gamma", {"t": 400.0, "kind": "error", "text": "The disk is full."})
    write_run(runs / "long", [run_event(steps=6000), *rows(1, 6000)])
    write_run(runs / HOSTILE_NAME, map(_hostile, a_run(200)), lr=3e-4, note=HOSTILE, link=LINK)
    append(runs / HOSTILE_NAME, {"t": 300.0, "kind": "message", "text": HOSTILE})


def _fed(event: Mapping[str, Any]) -> dict[str, Any]:
    """Two sources, three samples of the one to one of the other, and a metric of the model."""
    if event["kind"] != "step":
        return dict(event)
    step = event["step"]
    told = {"data/web": (3 * step, 0.7), "data/code": (step, 0.3)}
    sources = {name: {"samples": n, "tokens": 16 * n, "epochs": n / 1000, "target": t} for name, (n, t) in told.items()}
    return {**event, "sources": sources, "metrics": {"firing_rate": 0.125}}


def _hostile(event: Mapping[str, Any]) -> dict[str, Any]:
    if event["kind"] == "run":
        return {**event, "model": {"name": HOSTILE, "size": HOSTILE}, "datasets": [HOSTILE], "device": HOSTILE}
    if event["kind"] == "sample":
        return {**sample_event(event["step"], HOSTILE), "prompt": HOSTILE, "expected": LINK}
    if event["kind"] != "step":
        return dict(event)
    source = {"samples": 5, "tokens": 80, "epochs": 0.1, "target": 0.5}
    spans = {**event["spans"], HOSTILE: 0.1}
    return {**event, "sources": {HOSTILE: source, LINK: source}, "metrics": {HOSTILE: 0.5}, "spans": spans}


def write_data(folder: Path) -> None:
    tales = write_jsonl(folder / "tales.jsonl", TALES)
    prepare(tales, out=folder / "data" / "tales", chunk_size=64, val_fraction=0.2, task_bytes=4000)
    hostile = write_jsonl(folder / "hostile.jsonl", [HOSTILE, LINK, "<b>bold</b>", "日本語 👨‍👩‍👧‍👦 \u202e\x07"] * 5)
    prepare(hostile, out=folder / "data" / HOSTILE_NAME, tokenizer="bytes", chunk_size=64)
