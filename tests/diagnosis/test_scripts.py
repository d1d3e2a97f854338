"""Small training scripts as people write them, each with one fault: the report names it, and its line, first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace.tokenizers
from headrace.diagnosis.report import Report
from headrace.diagnosis.script import run_script

SCRIPTS = Path(__file__).parent / "scripts"
TOKENIZER = Path(headrace.tokenizers.__file__).parent / "data" / "headrace-32k.json"
FAULTS = {  # script: the rule that has to come first
    "tokenize_per_sample": "tokenizing_per_sample",
    "tokenize_in_dataset": "tokenizing_per_sample",
    "tokenize_in_workers": "tokenizing_per_sample",
    "tokenize_batches": "tokenizing_in_loop",
    "item_per_token": "sync_in_loop",
    "print_logits": "sync_in_loop",
    "mask_indexing": "sync_in_loop",
    "padding": "padding",
    "small_files": "small_files",
    "slow_get_batch": "waiting_for_data",
    "too_many_workers": "too_many_workers",
    "too_many_threads": "oversubscribed_threads",
    "optimizer_one_by_one": "eager_optimizer",
    "checkpoint_every_step": "checkpoint_stalls",
    "evaluate_often": "evaluation_stalls",
    "detached_loss": "loss_not_falling",
    "embedding_without_gradient": "no_gradient",
    "log_everything": "logging_in_loop",
}
CLEAN = ("clean_get_batch", "clean_dataloader", "clean_accumulation")
# What is far beyond its threshold, or no matter of time, on the busiest machine too.
SURE = {"detached_loss", "embedding_without_gradient", "small_files", "tokenize_per_sample"}
timed = pytest.mark.skipif("HEADRACE_TIMED" not in os.environ, reason="wants a quiet machine: HEADRACE_TIMED=1")
ON_ONE_CORE = {"too_many_workers", "too_many_threads"}  # so that a few are too many on every machine


def diagnose(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    argument = TOKENIZER if name.startswith("tokenize") else folder
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), str(argument)]
    code, report = run_script(command, stdout=subprocess.DEVNULL)
    assert code == 0
    return report


def line_of_fault(name: str) -> int:
    lines = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith("# fault"))
    return number


@pytest.fixture
def one_core() -> object:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system does not bind processes to cores")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SURE else timed) for name in FAULTS])
def test_fault_comes_first_with_its_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in ON_ONE_CORE:
        request.getfixturevalue("one_core")
    report = diagnose(name, tmp_path, monkeypatch)
    assert report.missing == []
    first = report.fixes[0]
    assert first.site is not None
    assert (first.rule, first.site.file, first.site.line) == (
        FAULTS[name],
        str(SCRIPTS / f"{name}.py"),
        line_of_fault(name),
    )


@timed
@pytest.mark.parametrize("name", CLEAN)
def test_clean_script_has_nothing_to_fix(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = diagnose(name, tmp_path, monkeypatch)
    assert (report.fixes, report.missing) == ([], [])
    assert report.share("forward", "backward", "optimizer") > 0.5
