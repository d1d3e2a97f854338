"""What a person sees while a run goes on: right at 80 columns, without colour, and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headrace.cli.live import LiveProgress, PlainProgress, live_view, plain_line, show_progress
from headrace.pipeline import Progress
from headrace.pipeline.results import Counts

PROGRESS = Progress(
    tasks_done=1234,
    tasks=56789,
    input_bytes=123_456_789_000,
    total_input_bytes=987_654_321_000,
    counts=Counts(documents=123_456_789, rejects=1_234, text_bytes=10**12, tokens=234_567_890_123),
    seconds=5000.0,
    text_mb_per_s=1234.5,
    tokens_per_s=345_678_901.0,
    eta_seconds=86_399.0,
    stage_shares={"read": 0.2, "tokenize": 0.7, "verify": 0.03, "write": 0.07},
)


def rendered(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, no_color=True)
    console.print(live_view("Preparing data/web", PROGRESS))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_the_largest_numbers_fit_80_columns() -> None:
    lines = rendered(80)
    assert len(lines) == 4, lines
    text = "\n".join(lines)
    for word in ("Preparing data/web", "12%", "task 1234/56789", "23:59:59 left", "MB/s", "rejected", "tokenize 70%"):
        assert word in text, word


def test_a_plain_line_has_what_a_log_needs() -> None:
    line = plain_line(PROGRESS)
    assert line.startswith("12% task 1234/56789")
    assert "123,456,789 documents" in line
    assert "1,234 rejected, 23:59:59 left" in line


def test_in_a_pipe_a_line_comes_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 11.0, 11.0, 12.0, 22.0, 22.0])
    monkeypatch.setattr("headrace.cli.live.time.monotonic", lambda: next(clock))
    with PlainProgress() as plain:
        for _ in range(4):
            plain.progress(PROGRESS)
    assert capsys.readouterr().err.count("12% task") == 2
    assert plain.last is PROGRESS


def test_no_terminal_no_live_view() -> None:
    assert type(show_progress("x")) is PlainProgress


def test_the_live_view_leaves_the_screen_clean() -> None:
    live = LiveProgress("Preparing x")
    live._console.file = io.StringIO()

    def stopped_half_way() -> None:
        with live:
            live.progress(PROGRESS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_half_way()
    assert not live._live.is_started
