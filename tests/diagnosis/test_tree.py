"""What a person reads: the form of the tree, at any width, without colour, and nothing that steers a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headrace.cli.theme import terminal_theme
from headrace.diagnosis.report import Fix, Phase, Report, Site, phases_from
from headrace.diagnosis.tree import plain_tree, rich_tree

TREE = """\
Step 412 ms   1,240 tokens/s   CPU 100%   GPU 10%
├─ tokenization      124 ms   30%   ← bottleneck: data.py:41 tokenizer(text), one call per sample
├─ forward+backward   41 ms   10%
├─ host sync         206 ms   50%   ← bottleneck: train.py:88 loss.item(), 3,000 times a step
└─ python             41 ms   10%
Fix train.py:88 first: read the loss once per log interval  → 2.0x (bound by Amdahl, measured share)

Sync-bound. 100 steps measured, 10 of warm-up left out.

1. The loop waits for numbers   2.0x
   /home/me/train.py:88 loss.item()
   206 ms of a step (50%)
   → read the loss once per log interval
     keep loss.detach()

2. Text is tokenized one by one   1.4x
   /home/me/data.py:41 tokenizer(text)
   124 ms of a step (30%)
   → tokenize once, before training
     headrace prepare TEXT

Not measured
  GPU memory: nvidia-ml-py is not installed"""


def a_report() -> Report:
    return Report(
        kind="run",
        subject="python train.py",
        verdict="Sync-bound.",
        steps=100,
        left_out=10,
        step_ms=412,
        tokens_per_second=1240,
        cpu=1.0,
        gpu=0.1,
        phases=phases_from({"tokenization": 124, "host_sync": 206, "forward": 20, "backward": 21, "python": 41}),
        fixes=[
            Fix(
                rule="sync_in_loop",
                title="The loop waits for numbers",
                evidence="206 ms of a step (50%)",
                advice="read the loss once per log interval\nkeep loss.detach()",
                phase="host_sync",
                site=Site(file="/home/me/train.py", line=88, code="loss.item()", calls=3000, ms=206),
                saves_ms=206,
                speedup=2.0,
            ),
            Fix(
                rule="tokenizing_per_sample",
                title="Text is tokenized one by one",
                evidence="124 ms of a step (30%)",
                advice="tokenize once, before training\nheadrace prepare TEXT",
                phase="tokenization",
                site=Site(file="/home/me/data.py", line=41, code="tokenizer(text)", calls=32, ms=124),
                saves_ms=124,
                speedup=1.43,
            ),
        ],
        missing=["GPU memory: nvidia-ml-py is not installed"],
    )


def test_the_form() -> None:
    assert plain_tree(a_report(), 100) == TREE


def test_a_report_prints_itself() -> None:
    assert str(a_report()) == TREE


@pytest.mark.parametrize("width", [30, 50, 60, 80, 120])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    report = a_report()
    report.fixes[0].site = Site(file="/a/very/long/" + "x" * 90 + ".py", line=1, code="y = " + "f(" * 60, calls=1)
    lines = plain_tree(report, width).splitlines()
    assert [line for line in lines[1:] if len(line) > max(width, 36)] == []  # a phase without its note takes 36


def test_80_columns_lose_no_word() -> None:
    narrow, wide = plain_tree(a_report(), 80), plain_tree(a_report(), 200)
    assert len(narrow.splitlines()) > len(wide.splitlines())
    branches = str.maketrans("", "", "│")
    assert narrow.translate(branches).split() == wide.split()


def test_colour_changes_no_letter() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard", no_color=False,
                      theme=terminal_theme())  # fmt: skip
    console.print(rich_tree(a_report(), 80), soft_wrap=True)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[" in shown
    plain = Console(file=io.StringIO(), width=80)
    plain.print(rich_tree(a_report(), 80), soft_wrap=True)
    assert plain.file.getvalue().rstrip("\n") == plain_tree(a_report(), 80)  # type: ignore[attr-defined]


def test_forward_and_backward_stand_alone_when_one_is_at_fault() -> None:
    report = a_report()
    report.fixes[0].phase = "forward"
    text = plain_tree(report)
    assert "├─ forward" in text
    assert "├─ backward" in text
    assert "forward+backward" not in text


def test_trifles_are_one_line_and_the_times_still_add_up() -> None:
    phases = phases_from({"forward": 990.0, "data_wait": 4.0, "host_sync": 3.0, "logging": 3.0})
    text = plain_tree(Report(kind="run", subject="x", verdict="", step_ms=1000, phases=phases))
    assert text.splitlines()[1:3] == ["├─ forward   990 ms   99%", "└─ all else   10 ms    1%"]


def test_nothing_to_fix() -> None:
    report = a_report()
    report.fixes = []
    assert "No rule finds anything to fix." in plain_tree(report)
    assert "bottleneck" not in plain_tree(report)


def test_a_fault_that_costs_no_time_has_no_gain() -> None:
    fix = Fix(rule="no_gradient", title="No gradient", evidence="1 parameter", advice="use it in the loss")
    text = plain_tree(Report(kind="run", subject="x", verdict="Odd.", step_ms=5, fixes=[fix]))
    assert "Fix first: use it in the loss\n" in text
    assert "Amdahl" not in text


def test_a_report_without_steps_names_its_subject() -> None:
    assert plain_tree(Report(kind="data", subject="data/web", verdict="Fast enough.")).splitlines() == [
        "data data/web",
        "",
        "Fast enough.",
    ]


def test_code_cannot_steer_the_terminal() -> None:
    report = a_report()
    assert report.fixes[0].site is not None
    report.fixes[0].site.code = "x = '\x1b[2J\x07'\r\n\u202e \ud800 [bold]y[/]"
    report.fixes[0].title = report.verdict = report.missing[0] = "\x1b]0;title\x07 [red]"
    text = plain_tree(report)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "[bold]y[/]" in text
    assert "[red]" in rich_tree(report).plain


def test_small_numbers_keep_their_figures() -> None:
    phases = [Phase(name="forward", ms=0.034, share=0.5), Phase(name="python", ms=3.21, share=0.5)]
    text = plain_tree(Report(kind="run", subject="x", verdict="", step_ms=3.244, phases=phases))
    assert "Step 3.2 ms" in text
    assert "0.03 ms" in text
