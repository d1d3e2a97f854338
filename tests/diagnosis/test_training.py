"""A run's folder, diagnosed from its events: what they say, what they cannot say, and what is wrong with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import headrace
from conftest_events import PER_STEP, SPANS, a_run, eval_event, run_event, step_event
from headrace.diagnosis.report import load_report
from headrace.diagnosis.training import diagnose_run_folder
from headrace.errors import UsageError
from headrace.telemetry import EventLog


def folder_of(path: Path, events: Iterable[dict[str, Any]]) -> Path:
    log = EventLog(path / "events.jsonl")
    for event in events:
        log.write_event(event)
    log.close()
    return path


def spans(**seconds: float) -> dict[str, float]:
    return {**dict.fromkeys(SPANS, 0.0), **seconds}


def steps(count: int, first: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [step_event(first + 10 * (number + 1), **more) for number in range(count)]


def test_the_phases_of_a_run(tmp_path: Path) -> None:
    report = diagnose_run_folder(folder_of(tmp_path, a_run(200)))
    assert report.kind == "training"
    assert (report.steps, report.left_out) == (190, 10)
    assert report.step_ms == pytest.approx(50)
    assert report.tokens_per_second == pytest.approx(PER_STEP / 0.05)
    assert report.cpu == pytest.approx(0.87)
    assert report.phase("backward").ms == pytest.approx(25)
    assert report.phase("host_sync").ms == pytest.approx(0.5)
    assert report.phase("python").share == pytest.approx(0.05)
    assert sum(phase.share for phase in report.phases) == pytest.approx(1)
    assert report.verdict.startswith("Compute-bound: 85%")
    assert report.fixes == []


def test_warm_up_is_left_out_after_every_start(tmp_path: Path) -> None:
    """Compiling falls into the first interval of each start."""
    slow = spans(forward=60.0)
    events = [
        run_event(),
        step_event(10, spans=slow),
        *steps(3, first=10),
        run_event(20),
        step_event(30, spans=slow),
        *steps(2, first=30),
    ]
    report = diagnose_run_folder(folder_of(tmp_path, events))
    assert (report.steps, report.left_out) == (50, 20)
    assert report.step_ms == pytest.approx(50)


def test_one_interval_is_better_than_none(tmp_path: Path) -> None:
    report = diagnose_run_folder(folder_of(tmp_path, [run_event(), step_event(10)]))
    assert (report.steps, report.left_out) == (10, 0)
    assert any("Warm-up" in reason for reason in report.missing)


@pytest.mark.parametrize(
    ("data", "says"), [(["a.jsonl"], "headrace prepare"), ([[0, [["data/web", 1.0]]]], "headrace diagnose data")]
)
def test_waiting_for_data_has_advice_for_its_loader(tmp_path: Path, data: Any, says: str) -> None:
    waiting = spans(data_wait=0.4, forward=0.1)
    events = [run_event(extra={"data": data}), *steps(5, spans=waiting, max_wait=0.07)]
    report = diagnose_run_folder(folder_of(tmp_path, events))
    (fix,) = report.fixes
    assert (fix.rule, fix.phase) == ("waiting_for_data", "data_wait")
    assert says in fix.advice
    assert fix.speedup == pytest.approx(5)
    assert report.verdict.startswith("Input-bound: 80%")
    assert report.facts["longest_wait_ms"] == pytest.approx(70)


@pytest.mark.parametrize(("span", "rule"), [("evaluation", "evaluation_stalls"), ("checkpoint", "checkpoint_stalls")])
def test_stalls_are_named_with_their_step(tmp_path: Path, span: str, rule: str) -> None:
    usual, held_up = spans(forward=0.5), spans(forward=0.5, **{span: 1.0})
    events = [run_event(), *steps(4, spans=usual), step_event(50, spans=held_up)]
    (fix,) = diagnose_run_folder(folder_of(tmp_path, events)).fixes
    assert fix.rule == rule
    assert f"--{'eval' if span == 'evaluation' else span}-every" in fix.advice
    assert "1 stall, the longest 1,000 ms after step 40" in fix.evidence
    assert fix.saves_ms == pytest.approx(0.75 * 25)


def test_a_loss_that_stays(tmp_path: Path) -> None:
    events = [run_event(), *steps(5, losses=[1.0] * 10, grad_norm=0.0)]
    (fix,) = diagnose_run_folder(folder_of(tmp_path, events)).fixes
    assert fix.rule == "loss_not_falling"
    assert "norm of the gradient is 0" in fix.evidence


def test_a_loss_that_is_no_number(tmp_path: Path) -> None:
    events = [run_event(), *steps(5), step_event(60, losses=[float("nan")] * 10, loss=float("nan"))]
    assert diagnose_run_folder(folder_of(tmp_path, events)).fixes[0].rule == "loss_not_falling"


def test_steps_that_were_done_again_count_once_in_the_loss(tmp_path: Path) -> None:
    """The first time the loss stayed; the second time, from the same checkpoint, it fell."""
    events = [run_event(), *steps(3, losses=[5.0] * 10), run_event(0), *steps(12)]
    assert diagnose_run_folder(folder_of(tmp_path, events)).fixes == []


def test_on_a_gpu_the_clock_of_the_device_counts(tmp_path: Path) -> None:
    host = spans(forward=0.01, backward=0.01, data_wait=0.1, sync=0.38)
    device = spans(forward=0.1, backward=0.2, host_to_device=0.15, optimizer=0.05)
    events = [run_event(device="cuda:0"), *steps(4, spans=host, device_spans=device, gpu=0.7)]
    report = diagnose_run_folder(folder_of(tmp_path, events))
    assert report.step_ms == pytest.approx(50)
    assert report.phase("host_sync").ms == 0
    assert report.phase("data_wait").ms == pytest.approx(10)
    assert report.phase("host_to_device").ms == pytest.approx(5)
    assert report.gpu == pytest.approx(0.7)


def test_facts(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_run(200))
    facts = diagnose_run_folder(folder).facts
    assert facts["mfu"] == pytest.approx(0.41)
    assert facts["model"] == "transformer small"
    assert facts["training_tokens_per_second"] == pytest.approx(PER_STEP / 0.05 / 0.93)
    assert facts["val_loss"] == pytest.approx(eval_event(200)["val_loss"])
    timeline = facts["timeline"]
    assert timeline["steps"] == list(range(20, 201, 10))
    assert timeline["phases"]["backward"] == [pytest.approx(25)] * 19


def test_a_long_run_has_a_timeline_of_bounded_length(tmp_path: Path) -> None:
    timeline = diagnose_run_folder(folder_of(tmp_path, [run_event(), *steps(1002)])).facts["timeline"]
    assert len(timeline["steps"]) == 334
    assert timeline["steps"][-1] == 10_020
    assert timeline["phases"]["forward"][-1] == pytest.approx(12.5)


def test_a_report_goes_through_a_file(tmp_path: Path) -> None:
    report = diagnose_run_folder(folder_of(tmp_path, a_run(200)))
    report.save(tmp_path / "report.json")
    assert load_report(tmp_path / "report.json") == report


# What is not a run


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        diagnose_run_folder(tmp_path / "nothing")


def test_a_folder_without_events(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no events\.jsonl with events: it is not the folder of a run"):
        diagnose_run_folder(tmp_path)


def test_a_run_without_steps(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no event of a step"):
        diagnose_run_folder(folder_of(tmp_path, [run_event()]))


def test_cut_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    foreign = [{"kind": "step", "step": 5}, {"kind": "step", "step": 5, "steps": 0, "spans": {}}, {"t": 1.0}]
    odd = step_event(110, spans={"forward": 0.25, "invented": 0.25})
    folder = folder_of(tmp_path, [*a_run(100), *foreign, odd])
    with open(folder / "events.jsonl", "ab") as file:
        file.write(b'{"kind":"step","st')
    report = diagnose_run_folder(folder)
    assert report.steps == 100
    assert report.step_ms == pytest.approx(50)


# From Python


class Result(NamedTuple):
    out: Path


class Config(NamedTuple):
    out: str


class ATrainer(NamedTuple):
    config: Config


def test_diagnose_takes_a_folder_a_result_or_a_trainer(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_run(200))
    expected = diagnose_run_folder(folder)
    for run in (folder, str(folder), folder / "events.jsonl", Result(folder), ATrainer(Config(str(folder)))):
        assert headrace.diagnose(run) == expected
    assert str(expected).startswith("Step 50 ms   81,920 tokens/s   CPU 87%\n├─ ")


def test_torch_is_not_needed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_run(100))
    code = "import sys, headrace; print(headrace.diagnose(sys.argv[1])); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, timeout=60, capture_output=True)
