"""Scripts that wait for a GPU, found out without one. Each script says in comments what is to be found where."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace.diagnosis.fake_cuda.guard import TESTED, refusal
from headrace.diagnosis.fake_cuda.record import EnoughSteps, Recorder
from headrace.diagnosis.fake_cuda.result import Record, Sync
from headrace.diagnosis.fake_cuda.with_gpu import MESSAGE, watched_gpu
from headrace.diagnosis.report import Report
from headrace.diagnosis.sync import build_report, diagnose_sync, find, often, python_words
from headrace.diagnosis.sync_kinds import KINDS
from headrace.errors import UsageError

SCRIPTS = Path(__file__).parent / "sync_scripts"
COMMENT = re.compile(r"# (sync|rare): (\w+) ([\d.]+)")
no_fakes = refusal(torch.__version__, sys.platform)
fakes = pytest.mark.skipif(bool(no_fakes) or torch.cuda.is_available(), reason=no_fakes or "there is a real GPU")


@cache
def diagnosed(name: str, *args: str) -> Report:
    return diagnose_sync(["python", str(SCRIPTS / name), *args])


def expected(name: str, word: str = "sync") -> dict[tuple[int, str], float]:
    lines = (SCRIPTS / name).read_text().splitlines()
    found = ((number, COMMENT.search(line)) for number, line in enumerate(lines, 1))
    return {(number, match[2]): float(match[3]) for number, match in found if match and match[1] == word}


def reported(report: Report, name: str) -> dict[tuple[int, str], float]:
    """Line and kind of every fix, with the times a step."""
    assert {fix.site.file for fix in report.fixes if fix.site} <= {str(SCRIPTS / name)}
    return {
        (fix.site.line, fix.rule.removeprefix("sync_")): pytest.approx(fix.site.calls)
        for fix in report.fixes
        if fix.site
    }


@fakes
@pytest.mark.parametrize("name", ["every_kind.py", "amp.py", "loader.py"])
def test_every_sync_is_found_with_its_line_kind_and_rate_and_nothing_else(name: str) -> None:
    report = diagnosed(name)
    assert not [reason for reason in report.missing if "ended early" in reason]
    assert (report.steps, report.left_out) == (20, 1)
    assert reported(report, name) == expected(name)


@fakes
def test_a_loop_as_in_nano_gpt_has_one_sync_and_keeps_its_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "ckpt.pt"
    checkpoint.write_bytes(b"weeks of training")
    report = diagnosed("nano_gpt.py", str(tmp_path))
    assert reported(report, "nano_gpt.py") == expected("nano_gpt.py")
    assert report.fixes[0].evidence == "once a step"
    assert "loss.item() * 2" in report.fixes[0].site.code  # type: ignore[union-attr]
    assert "once per log interval" in report.fixes[0].advice
    assert report.verdict == "The CPU waits for the GPU once a step, in 1 line."
    assert checkpoint.read_bytes() == b"weeks of training"
    assert any("1 checkpoints were not written" in reason for reason in report.missing)
    assert {fact["kind"] for fact in report.facts["set_up"]} == {"to_device", "item", "save"}


@fakes
def test_what_happens_once_in_ten_steps_is_stated_and_not_held_against_the_script() -> None:
    report = diagnosed("rarely.py")
    assert report.fixes == []
    assert {
        (int(fact["place"].split(":")[1]), fact["kind"]): fact["per_step"] for fact in report.facts["rare"]
    } == expected("rarely.py", "rare")
    assert report.verdict.startswith("Nothing waits for the GPU in the loop; rarely.py:")
    assert "0.1 times a step (once in 10 steps)" in report.verdict


@fakes
def test_a_script_that_fails_still_gives_what_was_seen() -> None:
    report = diagnosed("fails.py")
    assert reported(report, "fails.py") == expected("fails.py")
    assert report.missing[0] == "The script ended early, after 5 steps: ValueError: the fifth step"
    assert any("values on the device are invented" in reason for reason in report.missing)


@fakes
def test_the_command_runs_a_module_prints_json_alone_and_stops_after_its_steps() -> None:
    code = "from headrace.cli.diagnose_sync import sync; sync()"
    command = [sys.executable, "-c", code, "--steps", "3", "--json", "--", "python", "-m", "fails"]
    done = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert (report["kind"], report["steps"]) == ("sync", 3)
    assert report["fixes"][0]["site"]["calls"] == 1
    assert report["fixes"][0]["site"]["file"] == str(SCRIPTS / "fails.py")
    assert not any("ended early" in reason for reason in report["missing"])


@fakes
@pytest.mark.slow
def test_the_syncs_of_the_hugging_face_trainer_are_named_where_they_happen(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    report = diagnosed("hf_trainer.py", str(tmp_path))
    assert report.steps == 11
    inside = {(fix.rule, fix.evidence.partition(", in ")[2].rpartition(":")[0]): fix for fix in report.fixes}
    assert inside["sync_bool", "transformers/trainer.py"].site.calls == 2  # type: ignore[union-attr]
    assert "logging_nan_inf_filter" in inside["sync_bool", "transformers/trainer.py"].advice
    assert "logging_steps" in inside["sync_item", "transformers/trainer.py"].advice
    assert {fix.site.code for fix in report.fixes if fix.site} == {"trainer.train()"}


class Waiting(torch.Tensor):
    """A tensor on the CPU that warns as one on a GPU does under set_sync_debug_mode."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.Tensor.item, torch.Tensor.__bool__):
            warnings.warn(f"{MESSAGE} (Triggered internally)", stacklevel=2)
        return super().__torch_function__(func, types, args, kwargs or {})


# A GPU warns from C++: no line of Python stands between the script and the warning.
warning_code = Waiting.__torch_function__.__func__  # type: ignore[attr-defined]
warning_code.__code__ = warning_code.__code__.replace(co_filename="<a GPU>")


def train_on_a_gpu() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    loss = torch.ones(()).as_subclass(Waiting)
    while True:
        (weight**2).sum().backward()
        optimizer.step()
        loss.item()
        loss.item()
        assert loss


def test_the_warnings_of_a_real_gpu_become_records() -> None:
    modes: list[str] = []
    recorder = Recorder(mode="gpu", stop_after=4)
    with pytest.raises(EnoughSteps), watched_gpu(recorder, modes.append):
        train_on_a_gpu()
    assert modes == ["warn", "default"]
    report = build_report("python train.py", recorder.record)
    assert [(fix.rule, fix.evidence, fix.site.code) for fix in report.fixes if fix.site] == [
        ("sync_item", "once a step", "loss.item()"),
        ("sync_item", "once a step", "loss.item()"),
        ("sync_bool", "once a step", "assert loss"),
    ]
    assert any("set_sync_debug_mode" in reason for reason in report.missing)


def test_other_warnings_go_where_they_went() -> None:
    with pytest.warns(UserWarning, match="something else"), watched_gpu(Recorder(mode="gpu"), lambda mode: None):
        warnings.warn("something else", stacklevel=1)


def test_steps_are_those_of_the_optimizer_that_stepped_first() -> None:
    recorder, first, second = Recorder(mode="fake"), object(), object()
    for _ in range(3):
        recorder.after_step(first, (), {})
        recorder.after_step(second, (), {})
    assert recorder.record.steps == 3


def record_of(counts: dict[int, int], *, steps: int, kind: str = "item", through: str = "") -> Record:
    sync = Sync(kind=kind, file=__file__, line=1, function="f", through=through, counts=counts)
    return Record(mode="fake", torch="2.13.0", steps=steps, syncs=[sync])


def test_set_up_and_the_unfinished_last_step_are_not_counted() -> None:
    found = find(record_of({0: 100, 1: 3, 2: 3, 3: 50}, steps=3))
    assert [(item.per_step, item.total) for item in found] == [(3.0, 156)]


def test_with_one_step_everything_counts_and_the_report_says_so() -> None:
    report = build_report("python train.py", record_of({0: 2}, steps=1))
    assert [fix.evidence for fix in report.fixes] == ["2 times a step"]
    assert any("Only one step was made" in reason for reason in report.missing)


def test_a_script_without_an_optimizer_is_no_clean_script() -> None:
    assert build_report("python x.py", record_of({0: 2}, steps=0)).verdict.startswith("No step of an optimizer")


def test_what_torch_does_in_the_users_name_has_its_own_advice() -> None:
    record = record_of({1: 1}, steps=2, through="torch/amp/grad_scaler.py:478")
    fix = build_report("python train.py", record).fixes[0]
    assert (fix.rule, "bfloat16" in fix.advice) == ("sync_grad_scaler", True)


def test_rates_read_like_language() -> None:
    assert [often(rate) for rate in (1, 3, 1500, 0.1)] == [
        "once a step",
        "3 times a step",
        "1,500 times a step",
        "0.1 times a step (once in 10 steps)",
    ]


def test_every_kind_of_the_scripts_has_advice() -> None:
    kinds = {kind for script in SCRIPTS.glob("*.py") for _, kind in expected(script.name)}
    assert kinds <= KINDS.keys()
    assert len(kinds) >= 12


@pytest.mark.parametrize("version", ["2.6.0", "3.0.1+cu130"])
def test_other_versions_of_torch_are_refused_with_the_ones_that_will_do(version: str) -> None:
    message = refusal(version, "linux") or ""
    assert version in message
    assert all(f"{major}.{minor}" in message for major, minor in TESTED)


def test_other_systems_are_refused() -> None:
    assert "Linux" in (refusal("2.13.0", "darwin") or "")
    assert refusal("2.13.1+cpu", "linux") is None


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ([], "No command"),
        (["bash", "train.sh"], "bash"),
        (["torchrun", "--nproc-per-node=2", "train.py"], "torchrun"),
        (["python"], "nothing"),
        (["python", "-c", "print()"], "-m module"),
        (["python", "-m"], "-m module"),
        (["python", "nowhere.py"], "nowhere.py"),
    ],
)
def test_what_is_no_python_script_is_refused_with_what_to_give(command: list[str], word: str) -> None:
    with pytest.raises(UsageError, match=re.escape(word)):
        python_words(command)


def test_scripts_and_modules_are_taken() -> None:
    script = str(SCRIPTS / "fails.py")
    assert python_words(["python3.11", "-u", script, "--lr", "1"]) == [script, "--lr", "1"]
    assert python_words([script]) == [script]
    assert python_words(["/usr/bin/python3", "-m", "package.train", "x"]) == ["-m", "package.train", "x"]


def test_at_least_one_step_is_counted() -> None:
    with pytest.raises(UsageError, match="--steps 0"):
        diagnose_sync(["python", str(SCRIPTS / "fails.py")], steps=0)
