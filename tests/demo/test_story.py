"""A whole demo: what it leaves behind, what it says, and how it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from conftest_demo import Told
from headrace.cli.train import recipe_of as recipe_of_options
from headrace.cli.train import train
from headrace.demo import commands, plan
from headrace.demo.folder import DemoFolder
from headrace.demo.plan import DemoConfig
from headrace.demo.story import SCRIPT, Story
from headrace.errors import Interrupted, UsageError
from headrace.training import TrainConfig, load_run


def test_from_nothing_to_two_models_that_write(told: Told) -> None:
    folder = told.folder
    for model in plan.MODELS:
        assert load_run(folder.run(model)).manifest.step == told.findings.fast[0].steps
    assert folder.page.read_text().startswith("<!doctype html>")
    assert [sample.model for sample in told.findings.samples] == ["transformer"] * 3 + ["ten"] * 3
    assert all(sample.text for sample in told.findings.samples)


def test_the_slow_script_is_the_one_that_can_be_read(told: Told) -> None:
    assert told.folder.script.read_bytes() == SCRIPT.read_bytes()
    assert str(told.folder.script) in told.findings.slow.report.subject
    rules = {fix.rule for fix in told.findings.slow.report.fixes}
    assert rules & {"tokenizing_per_sample", "sync_in_loop"}
    assert told.findings.host_reads_per_step > plan.LENGTH  # more than one row of them


def test_json_is_all_of_stdout_and_the_stages_are_on_stderr(told: Told) -> None:
    assert msgspec.json.decode(told.stdout) == msgspec.json.decode(told.folder.findings.read_bytes())
    for number, title in enumerate(("Train a tokenizer", "Prepare the text", "Check every byte"), 1):
        assert f"{number}. {title}" in told.stderr
    assert "$ headrace prepare python-stdlib" in told.stderr
    too_long = [line for line in told.stderr.splitlines() if len(line) > 80]
    assert all(str(told.folder.path) in line for line in too_long)  # a path is not broken, so that it can be copied
    assert "\x1b" not in told.stderr


def test_times_of_the_stages_add_up(told: Told) -> None:
    stages = told.findings.stages
    assert len(stages) == 9
    assert sum(stage["seconds"] for stage in stages) == pytest.approx(told.findings.seconds, abs=0.5)


@pytest.mark.parametrize("model", plan.MODELS)
def test_the_command_that_is_shown_is_the_run_that_was_made(told: Told, model: str) -> None:
    recipe = commands.recipe_of(told.folder, model, 12)
    words = commands.train_command(recipe)
    options = train.make_context("train", words[2:]).params
    assert options.pop("force")
    options.pop("as_json")
    typed = recipe_of_options(options)
    assert {**vars(typed), "train": None} == {**vars(recipe), "train": None}
    assert TrainConfig(steps=12, **typed.train) == TrainConfig(steps=12, **recipe.train)
    made = msgspec.json.decode((told.folder.run(model) / "run.json").read_bytes())
    assert made["train"]["lr"] == plan.LR
    assert made["recipe"]["batch_size"] == plan.ROWS


def test_it_starts_over_and_never_in_a_folder_of_somebody_else(told: Told, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files and is no demo"):
        DemoFolder(tmp_path).claim(DemoConfig(out=tmp_path), {})
    assert (tmp_path / "letter.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="is a file"):
        DemoFolder(tmp_path / "letter.txt").claim(DemoConfig(out=tmp_path), {})


def test_starting_over_takes_away_what_was_found_before(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "demo")
    folder.claim(DemoConfig(out=folder.path), {})
    for path in (folder.findings, folder.page, folder.slow_report, folder.diagnosis("ten")):
        path.write_text("old")
    (folder.path / "notes.txt").write_text("mine")
    folder.claim(DemoConfig(out=folder.path), {})
    left = {path.name for path in folder.path.rglob("*") if path.is_file()}
    assert left == {"demo.json", "notes.txt"}


def test_a_stop_says_where_and_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(story: Story) -> str:
        raise KeyboardInterrupt

    class Quiet:
        def stage(self, number: int, title: str, command: list[str]) -> None: ...

    story = Story(DemoConfig(out=tmp_path / "demo"), Quiet(), 0.0)  # type: ignore[arg-type]
    monkeypatch.setattr(Story, "_train_tokenizer", stop)
    (tmp_path / "demo" / "data").mkdir(parents=True)
    (tmp_path / "demo" / "demo.json").write_text("{}")
    (tmp_path / "demo" / "data" / "metadata.json").write_text("{}")
    with pytest.raises(Interrupted, match=r"at: Train a tokenizer\. There is the prepared data in .*starts over"):
        story.tell()


def test_ctrl_c_in_the_slow_script_ends_all_of_it_cleanly(tmp_path: Path) -> None:
    """The script is in the same process group, as on a terminal, so both get the signal."""
    command = [sys.executable, "-m", "headrace", "demo", "--out", str(tmp_path / "demo"), "--seconds", "400"]
    demo = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert demo.stderr is not None
        for line in demo.stderr:  # the script's own lines pass through every 10 s
            if "tokens/s" in line and "step " in line:
                break
        os.killpg(demo.pid, signal.SIGINT)
        stdout, stderr = demo.communicate(timeout=300)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
    assert demo.returncode == 75, stderr
    assert "4. Train the slow way" in stdout
    assert "5. " not in stdout
    assert "Stopped at: Train the slow way" in stderr
    assert "the prepared data in" in stderr
    assert "Traceback" not in stderr
