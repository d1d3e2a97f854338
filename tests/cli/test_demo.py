"""`headrace demo` as it is typed and as it looks; what it does is tested in tests/demo."""

from __future__ import annotations

import shlex
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from conftest_cli import Headrace
from headrace.cli import demo_screen, demo_summary
from headrace.cli.demo_screen import TerminalScreen, command_lines, script_view
from headrace.demo.findings import Curve, Findings, Sample, Way
from headrace.diagnosis.compare import compare_reports
from headrace.diagnosis.report import Fix, Report, Site, phases_from


def test_prepare_only_needs_no_torch(headrace: Headrace, tmp_path: Path) -> None:
    text = headrace("demo", "--prepare-only", "--out", tmp_path / "demo").stdout
    for word in ("1. Prepare", "2. Look", "3. Read", "4. Check", "Whole", "Next, on your own text"):
        assert word in text, word
    assert (tmp_path / "demo" / "data" / "metadata.json").exists()


def test_without_torch_it_says_what_to_install(headrace_here: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_screen, "find_spec", lambda name: None)
    said = headrace_here("demo", check=1).stderr
    assert "pip install 'headrace[train]'" in said
    assert "--prepare-only" in said


def test_a_folder_with_other_files_is_left_alone(headrace_here: Headrace, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert "is no demo" in headrace_here("demo", "--out", tmp_path, check=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_impossible_seconds(headrace_here: Headrace, tmp_path: Path) -> None:
    assert "--seconds 0" in headrace_here("demo", "--out", tmp_path / "d", "--seconds", 0, check=2).stderr
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("width", [40, 60, 76, 200])
def test_commands_fit_and_can_be_copied(width: int) -> None:
    words = ["headrace", "train", "demo/data", "--model", "ten", "--steps", "120", "--prompt", "def main(", "--force"]
    lines = command_lines(words, width)
    assert all(len(line) <= width for line in lines)
    assert shlex.split(" ".join(line.removesuffix("\\") for line in lines)) == words
    assert not any(line.rstrip("\\ ").endswith(("--model", "--steps")) for line in lines)


def test_what_a_script_prints_is_followed(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_screen, "PLAIN_EVERY", 0.0)
    with script_view(quiet=False) as file:
        file.write("step 1  loss 8.2\nstep 2  loss [red]7.9[/]\n")
        file.flush()
    assert "step 2  loss [red]7.9[/]" in capfd.readouterr().err
    with script_view(quiet=True) as file:
        file.write("step 1\n")
    assert capfd.readouterr().err == ""


def test_a_stage_is_announced_with_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    screen = TerminalScreen()
    screen.stage(2, "Prepare the text", ["headrace", "prepare", "python-stdlib"])
    screen.done("a long sentence with [brackets] " * 4, 3.2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["2. Prepare the text", "   $ headrace prepare python-stdlib"]
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith("  3.2 s")


def way(name: str, rate: float, report: Report, **more: float) -> Way:
    curve = Curve(tokens=[1000, 2000, 3000], seconds=[1.0, 2.0, 3.0], loss=[8.0, 7.0, 6.5])
    settings = {"steps": 30, "tokens": 3000, "seconds": 3.0, "loss": 6.5, **more}
    return Way(name=name, tokens_per_second=rate, curve=curve, report=report, **settings)  # type: ignore[arg-type]


@pytest.fixture
def found() -> Findings:
    site = Site(file="demo/slow_way.py", line=59, code="ids = tokenizer.encode(text).ids", calls=8)
    fix = Fix(rule="tokenizing_per_sample", title="Text is tokenized", evidence="8 calls", advice="prepare", site=site,
              phase="tokenization", saves_ms=40, speedup=1.4)  # fmt: skip
    slow = Report(kind="run", subject="python slow_way.py", verdict="Input-bound.", steps=9, step_ms=140, fixes=[fix],
                  tokens_per_second=7000, phases=phases_from({"tokenization": 40, "forward": 100}))  # fmt: skip
    fast = Report(kind="training", subject="runs/ten", verdict="Fine.", steps=9, step_ms=70, tokens_per_second=14_000,
                  phases=phases_from({"forward": 70}))  # fmt: skip
    return Findings(
        folder="demo",
        page="demo/demo.html",
        machine={"cores": 2, "load_at_start": 0.1, "device": "CPU"},
        stages=[],
        seconds=118.0,
        data={},
        slow=way("slow way", 7000, slow),
        fast=[way("transformer", 14_321, fast, bits_per_byte=1.93), way("ten", 11_000, fast, bits_per_byte=1.88)],
        factor=14_321 / 7000,
        costly_lines=[],
        host_reads_per_step=2000,
        padding=0.05,
        comparison=compare_reports(slow, fast),
        samples=[Sample(model="transformer", prompt="def main(", text="):\n\treturn\x1b[31m 1\n", seconds=0.2)],
        compare_command="headrace diagnose compare a b",
        next_commands=["headrace prepare yours", "headrace train yours", "headrace diagnose run -- python yours.py"],
    )


def summary(found: Findings, width: int) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None, highlight=False)
    demo_summary.show_summary(found, console)
    written: str = console.file.getvalue()  # type: ignore[attr-defined]
    return written


def test_summary_has_all_that_was_promised(found: Findings) -> None:
    text = summary(found, 80)
    for word in ("2.0 times faster", "7,000", "14,321", "11,000", "1.93 bits/byte", "the slow way", "the fast way",
                 "tokenization", "slow_way.py:59", "training loss", "def main(", "1:58: demo/demo.html",
                 *found.next_commands):  # fmt: skip
        assert word in text, word
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "Other programs" not in text


def test_summary_puts_trees_side_by_side_on_a_wide_terminal(found: Findings) -> None:
    assert any(line.count("Step ") == 2 for line in summary(found, 140).splitlines())
    assert not any(line.count("Step ") == 2 for line in summary(found, 80).splitlines())


def test_summary_names_a_busy_machine(found: Findings) -> None:
    found.machine["load_at_start"] = 2.5
    assert "load 2.5 on 2 cores" in summary(found, 80)


@pytest.mark.parametrize(
    ("terminal", "platform", "environment", "screen"),
    [
        (True, "linux", {"DISPLAY": ":0"}, True),
        (True, "linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        (True, "linux", {}, False),
        (True, "darwin", {}, True),
        (True, "darwin", {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, False),
        (True, "linux", {"DISPLAY": ":0", "CI": "1"}, False),
        (False, "linux", {"DISPLAY": ":0"}, False),
    ],
)
def test_a_browser_is_opened_only_where_somebody_sees_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, platform: str, environment: dict[str, str], screen: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(demo_summary.sys, "platform", platform)
    monkeypatch.setattr(demo_summary.sys.stdout, "isatty", lambda: terminal, raising=False)
    assert demo_summary.has_screen() is screen
