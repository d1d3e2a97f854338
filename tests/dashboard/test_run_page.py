"""The page of a run, and of several: what it says, that it is whole, and that no text of a run becomes markup."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from conftest_events import SPANS, a_run, eval_event, run_event, sample_event, step_event
from conftest_pages import HOSTILE, check
from headrace.dashboard.compare import differences
from headrace.dashboard.compare_page import compare_page, names_of
from headrace.dashboard.run_page import run_page
from headrace.telemetry import EventLog
from headrace.training.run_view import Run


def write(path: Path, events: Iterable[dict[str, Any]], config: dict[str, Any] | None = None) -> Run:
    log = EventLog(path / "events.jsonl")
    for event in events:
        log.write_event(event)
    log.close()
    if config is not None:
        (path / "run.json").write_text(json.dumps(config))
    return Run(path)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    config = {"recipe": {"model": {"name": "transformer"}, "seq_len": 64}, "train": {"lr": 0.0003, "steps": 1000}}
    return write(tmp_path / "first", a_run(1000), config)


def test_a_page_says_what_happened(run: Run) -> None:
    html = run_page(run)
    said = check(html).text
    for part in (
        "first",
        "finished",
        "transformer small, 25.3 M parameters, on web, code",
        "4.1 M",
        "3.0003",
        "3.1003",
    ):
        assert part in said, part
    for title in ("Loss", "Tokens per second", "Learning rate", "Gradient norm", "Model FLOPs utilization", "Memory"):
        assert f">{title}<" in html, title
    for part in (
        "the cat\nsat on",
        " the mat",
        " a mat",
        "seq_len",
        "0.0003",
        "10 checkpoints, the last at step 500, 600",
    ):
        assert part in said, part


def test_the_verdict_and_the_fixes_are_those_of_diagnose(tmp_path: Path) -> None:
    spans = {**dict.fromkeys(SPANS, 0.0), "data_wait": 0.4, "forward": 0.1}
    slow = write(tmp_path / "slow", [run_event(), *(step_event(step, spans=spans) for step in range(10, 110, 10))])
    said = check(run_page(slow)).text
    assert "The step waits for its data" in said
    assert "5.0x" in said
    assert "data wait 80%" in said


def test_a_run_that_goes_on_is_shown_as_it_is(tmp_path: Path) -> None:
    events = [{**event, "t": time.time()} for event in a_run(500)]
    said = check(run_page(write(tmp_path / "now", events))).text
    assert "running" in said
    assert "of 1,000" in said


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_first_moments_of_a_run(tmp_path: Path, count: int) -> None:
    events = [run_event(), step_event(10, loss=None, losses=[None] * 10, grad_norm=None, mfu=None)][:count]
    check(run_page(write(tmp_path / "new", events, {"recipe": {}, "train": {"steps": 5}})))


def test_metrics_of_the_model_are_drawn(tmp_path: Path) -> None:
    steps = [step_event(step, metrics={"firing_rate": 0.1 + step / 1000}) for step in (10, 20, 30)]
    html = run_page(write(tmp_path / "n", [run_event(), *steps]))
    assert ">firing rate<" in html
    assert "step 20\nfiring_rate  0.12" in check(html).tips


def test_going_on_and_steps_left_out_are_told(tmp_path: Path) -> None:
    again = [run_event(step=20), {"t": 5.0, "kind": "message", "text": "Going on"}, step_event(30, skipped=2)]
    found = write(tmp_path / "n", [run_event(), step_event(10), step_event(20), step_event(30), *again, step_event(40)])
    said = check(run_page(found)).text
    assert "Went on from step 20" in said
    assert "2 steps were left out" in said
    assert "Going on" in said


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    sample = {**sample_event(10), "prompt": HOSTILE, "expected": HOSTILE, "predicted": HOSTILE}
    model = {"name": HOSTILE, "size": HOSTILE}
    events = [
        run_event(model=model, datasets=[HOSTILE], device=HOSTILE, config={"precision": HOSTILE}),
        step_event(10, metrics={HOSTILE: 1.0}, spans={HOSTILE: 1.0, "forward": 1.0}),
        step_event(20, metrics={HOSTILE: 2.0}),
        eval_event(20),
        sample,
        {"t": 1.0, "kind": "message", "text": HOSTILE},
    ]
    folder = tmp_path / "<script>alert(1)"
    found = write(folder, events, {"recipe": {"x": HOSTILE.replace("\ud800", "")}, "train": {"<b>": ["<i>"]}})
    for html in (run_page(found), compare_page([found, write(tmp_path / "other", events)]), found._repr_html_()):
        assert "alert(1)" in check(html).text


def test_a_long_run_makes_a_small_page(tmp_path: Path) -> None:
    events = [run_event(steps=200_000), *(step_event(step) for step in range(10, 100_000, 10))]
    assert len(run_page(write(tmp_path / "long", events))) < 400_000


def test_the_loss_of_single_steps_is_the_band(tmp_path: Path) -> None:
    steps = [step_event(step, loss=4.0, losses=[3.0, 5.0 + 4 * (step == 50)]) for step in range(10, 110, 10)]
    html = run_page(write(tmp_path / "n", [run_event(), *steps]))
    band = re.findall(r'd="([^"]+)Z" fill="#\w+" fill-opacity', html)[0]
    assert len(band.split("L")) == 20


def test_comparing_shows_all_and_what_differs(run: Run, tmp_path: Path) -> None:
    config = {"recipe": {"model": {"name": "ten"}, "seq_len": 64}, "train": {"lr": 0.0003, "steps": 1000}}
    other = write(tmp_path / "second", a_run(500), config)
    html = compare_page([run, other])
    found = check(html)
    assert "2 runs compared" in found.text
    assert "recipe.model.name" in found.text
    assert "recipe.seq_len" not in found.text
    assert any(tip.startswith("step 130\nfirst  ") and "\nsecond  " in tip for tip in found.tips)
    assert 'class="n best"' in html


def test_differences_name_what_is_missing() -> None:
    configs = [{"train.lr": 1e-3, "train.out": "a", "same": 1}, {"train.out": "b", "same": 1}]
    assert differences(configs) == [{"name": "train.lr", "values": [0.001, None]}]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [write(tmp_path / group / "a", a_run(100)) for group in ("one", "two")]
    assert names_of(runs) == ["one/a", "two/a"]
    assert names_of([runs[0], runs[0]]) == ["a (1)", "a (2)"]
    assert "All settings are the same." in compare_page(runs)
