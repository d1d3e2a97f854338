"""Scripts as people write them with a framework, unchanged: they run as without the probe, and steps are right."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.diagnosis.report import Report, Site
from headrace.diagnosis.script import run_script

SCRIPTS = Path(__file__).parent / "frameworks"
FAULTS = [  # script, what is planted in it, the rule that has to come first
    ("nanogpt_style", "slow_get_batch", "waiting_for_data"),
    ("nanogpt_style", "item_per_token", "sync_in_loop"),
    ("hf_trainer", "tokenizing_collator", "tokenizing_in_loop"),
    ("lightning_module", "item_per_token", "sync_in_loop"),
    ("lightning_module", "slow_dataset", "too_few_workers"),
    ("torchrun_ddp", "slow_rank", "too_few_workers"),
]
CLEAN = ("nanogpt_style", "hf_trainer", "lightning_module", "torchrun_ddp", "compiled", "compiled_step")
NEEDS = {"hf_trainer": "transformers", "lightning_module": "lightning"}
timed = pytest.mark.skipif("HEADRACE_TIMED" not in os.environ, reason="wants a quiet machine: HEADRACE_TIMED=1")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where the scripts write if they are not told
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def command(name: str, *arguments: str) -> list[str]:
    if NEEDS.get(name) and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    started = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if name == "torchrun_ddp" else []
    return [sys.executable, *started, str(SCRIPTS / f"{name}.py"), *arguments]


def diagnose(folder: Path, name: str, *arguments: str, code: int = 0) -> tuple[Report, str]:
    with (folder / "printed").open("w+") as printed:
        exit_code, report = run_script(command(name, *arguments), stdout=printed)
        printed.seek(0)
        text = printed.read()
    assert exit_code == code, text
    assert report.missing == []
    return report, text


def without_probe(name: str) -> str:
    return subprocess.run(command(name), stdout=subprocess.PIPE, text=True, check=True).stdout


def dearest(report: Report, phase: str) -> Site:
    return report.phase(phase).sites[0]


def assert_whole(report: Report, *phases: str) -> None:
    """All of these took time, and together with the others they are the step."""
    assert [name for name in phases if report.phase(name).ms <= 0] == []
    assert sum(phase.ms for phase in report.phases) == pytest.approx(report.step_ms)


def test_nanogpt_style(tmp_path: Path) -> None:
    report, printed = diagnose(tmp_path, "nanogpt_style")
    assert printed == without_probe("nanogpt_style")
    assert (report.steps, report.left_out) == (21, 3)
    assert_whole(report, "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging")
    forward, evaluation = dearest(report, "forward"), dearest(report, "evaluation")
    assert (forward.file, forward.function, forward.calls) == (str(SCRIPTS / "nanogpt_style.py"), "<module>", 2)
    assert evaluation.function == "estimate_loss"
    assert {site.what for site in report.phase("host_sync").sites} == {"Tensor.item"}  # indices of batches are none


def test_hf_trainer(tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, "hf_trainer", "--out", str(tmp_path))
    assert (report.steps, report.left_out) == (13, 3)
    assert report.facts["framework"] == "transformers"
    assert_whole(report, "data_wait", "forward", "backward", "optimizer", "evaluation")
    for phase in ("data_wait", "forward", "backward"):
        site = dearest(report, phase)
        assert (site.file, site.code) == (str(SCRIPTS / "hf_trainer.py"), "trainer.train()")
    assert dearest(report, "forward").calls == dearest(report, "backward").calls == 2  # gathered gradients


def test_lightning(tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, "lightning_module", "--out", str(tmp_path))
    assert (report.steps, report.left_out) == (17, 3)
    assert report.facts["framework"] == "lightning"
    assert_whole(report, "data_wait", "forward", "backward", "optimizer", "evaluation", "checkpoint")
    assert (dearest(report, "forward").function, dearest(report, "forward").calls) == ("training_step", 1)
    assert {site.function for site in report.phase("evaluation").sites} >= {"validation_step"}


def test_ranks_of_torchrun_are_merged(tmp_path: Path) -> None:
    report, printed = diagnose(tmp_path, "torchrun_ddp")
    assert printed.startswith("step 0: loss")
    assert (report.steps, report.left_out) == (17, 3)
    assert_whole(report, "data_wait", "forward", "backward", "optimizer")
    steps = {row["steps"] for row in report.facts["processes"] if row["part"] == "main" or "rank" in row["part"]}
    assert steps == {20}
    assert sum(row["steps"] for row in report.facts["processes"]) == 40


def test_compiled_model(tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, "compiled", "--backend", "eager")
    assert (report.steps, report.left_out) == (21, 3)
    assert_whole(report, "forward", "backward", "optimizer")
    assert "OptimizedModule" in {site.what for site in report.phase("forward").sites}
    assert report.facts["compiling_seconds"] > 0


def test_compiled_training_step(tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, "compiled_step", "--backend", "eager")
    assert (report.steps, report.left_out) == (21, 3)
    assert_whole(report, "forward", "backward", "optimizer")
    assert dearest(report, "forward").what == dearest(report, "optimizer").what == "compiled train_step"
    assert dearest(report, "forward").code == "loss = train_step(*get_batch())"
    assert report.tokens_per_second


def test_odd_corners(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report, printed = diagnose(tmp_path, "odd_corners", code=1)
    words = [line if not line.startswith("loss") else "loss" for line in printed.splitlines()]
    assert words == ["loss", "loss", "traced True", "child left with 3", "loss", "printed from C"]
    error = capfd.readouterr().err
    assert '    raise RuntimeError("the last line of its traceback is shown")\n' in error
    assert "headrace" not in error.replace(str(SCRIPTS), "")
    assert (report.steps, report.left_out) == (7, 3)
    assert "compiled loss_of" in {site.what for site in report.phase("forward").sites}
    assert "compiled update" in {site.what for site in report.phase("optimizer").sites}


def test_killed_script_is_reported_from_what_it_wrote(tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, "killed", code=128 + 9)
    assert report.steps >= 17


def line_of(name: str, fault: str) -> int:
    lines = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"# fault: {fault}"))
    return number


@timed
@pytest.mark.parametrize(("name", "fault", "rule"), FAULTS)
def test_fault_comes_first_with_its_line(name: str, fault: str, rule: str, tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, name, "--fault", fault)
    first = report.fixes[0]
    assert first.site is not None
    assert (first.rule, first.site.file) == (rule, str(SCRIPTS / f"{name}.py"))
    line = line_of(name, fault)
    assert first.site.line == line or f"{name}.py:{line} " in first.evidence
    assert fault != "slow_rank" or "rank 1" in report.verdict


@timed
@pytest.mark.parametrize("name", CLEAN)
def test_clean_script_has_nothing_to_fix(name: str, tmp_path: Path) -> None:
    report, _ = diagnose(tmp_path, name)
    assert report.fixes == []
    assert report.share("forward", "backward", "optimizer") > 0.5
