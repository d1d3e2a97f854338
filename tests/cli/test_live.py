"""What a person sees while a run goes on: right at 80 columns, without colour, and in a pipe."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from headrace.cli.live import KEPT, LiveProgress, PlainProgress, Rates, live_view, plain_line, show_progress
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
    console.print(live_view("Preparing data/web", PROGRESS, list(range(80)), width))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_the_largest_numbers_fit_80_columns() -> None:
    lines = rendered(80)
    assert len(lines) == 4, lines
    text = "\n".join(lines)
    for word in (
        "Preparing data/web",
        "12%",
        "task 1,234/56,789",
        "eta 24 h 0 min",
        "MB/s 1234",
        "tokens/s 346 M",
        "documents 123 M",
        "tokens 235 G",
        "rejected 1,234",
        "tokenize 70%",
        " MB/s ▁▁▂▂▂▃▃▃▃▄▄▄▅▅▅▆▆▆▆▇▇▇██",
    ):
        assert word in text, (word, text)


@pytest.mark.parametrize("width", [1, 10, 40, 60, 80, 120, 200])
def test_four_lines_that_fit(width: int) -> None:
    lines = rendered(width)
    assert len(lines) == 4, lines
    assert max(map(len, lines)) <= width


def test_the_course_of_the_rate_is_bounded() -> None:
    rates = Rates()
    for second in range(10_000):
        done = 1_000_000 * second if second < 5000 else 5_000_000_000 + 3_000_000 * (second - 5000)
        rates.add(msgspec.structs.replace(PROGRESS, seconds=float(second), counts=Counts(text_bytes=done)))
    values = rates.values()
    assert 100 < len(values) <= KEPT
    assert values[0] == pytest.approx(1.0)
    assert values[-1] == pytest.approx(3.0)
    assert 0.4 < sum(value < 2 for value in values) / len(values) < 0.6


def test_a_plain_line_has_what_a_log_needs() -> None:
    line = plain_line(PROGRESS)
    assert line.startswith("12%  task 1,234/56,789  documents 123,456,789  tokens 234,567,890,123  MB/s 1234.5  ")
    assert line.endswith("rejected 1,234  eta 24 h 0 min")


def test_in_a_pipe_a_line_comes_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 11.0, 11.0, 12.0, 22.0, 22.0])
    monkeypatch.setattr("headrace.cli.live.time.monotonic", lambda: next(clock))
    with PlainProgress() as plain:
        for _ in range(4):
            plain.progress(PROGRESS)
    assert capsys.readouterr().err.count("12%  task") == 2
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
