"""What a person sees while a model trains: on wide and narrow terminals, without colour, and in a pipe."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import pytest
from rich.console import Console

from conftest_events import a_run, end_event, eval_event, run_event, sample_event, step_event
from headrace.cli.chart import draw_chart, sparkline
from headrace.cli.output import rough
from headrace.cli.theme import terminal_theme
from headrace.cli.train_status import RunStatus
from headrace.cli.train_view import TrainView
from headrace.pages.style import PHASE_COLOURS


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def terminal(width: int = 80, height: int = 24, **options: Any) -> Console:
    options = {"no_color": True, "legacy_windows": False, **options}
    return Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True),
        width=width,
        height=height,
        force_terminal=True,
        highlight=False,
        theme=terminal_theme(),
        _environ={"TERM": "xterm-256color", "COLORTERM": "truecolor"},
        **options,
    )


def pipe(encoding: str = "utf-8") -> Console:
    return Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True),
        width=80,
        highlight=False,
        _environ={},
    )


def written(console: Console) -> str:
    return console.file.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def screen(events: Any, width: int = 80, height: int = 24) -> list[str]:
    """The lines that are on a terminal after these events, without bold and dim."""
    return re.sub(r"\x1b\[[0-9;]*m", "", drawn(events, width, height)).splitlines()


def drawn(events: Any, width: int = 80, height: int = 24, **options: Any) -> str:
    console = terminal(width, height, **options)
    view = TrainView(console, clock=Clock())
    for event in events:
        view(event)
    with console.capture() as captured:
        console.print(view._render())
    return captured.get()


def test_everything_is_there_at_80_columns() -> None:
    lines = screen(a_run(500))
    text = "\n".join(lines)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for words in (
        "transformer small, 25.3 M parameters, on web, code  cpu",
        "50%  500/1,000  eta 25 s",
        "loss 3.0472",
        "val 3.1472",
        "perplexity 23.27",
        "accuracy 36.0%",
        "tokens/s 81,920",
        "MFU 41.0%",
        "lr 2.25e-04",
        "grad norm 0.9",
        "data wait 1.0%",
        "saved step 500",
        "backward 50.0%",
        "text   the cat sat on",
        "data   the mat",
        "model  a mat",
        "step 10 to 500",
    ):
        assert words in text, (words, text)


@pytest.mark.parametrize("width", [1, 5, 20, 39, 40, 80, 120, 300])
@pytest.mark.parametrize("height", [1, 5, 10, 24, 60])
def test_no_line_is_wider_than_the_terminal(width: int, height: int) -> None:
    lines = screen(a_run(500), width, height)
    assert max(map(len, lines)) <= width
    if width >= 80 and height >= 14:
        assert len(lines) < height


def test_no_colours_no_escape_codes_and_a_bar_of_letters() -> None:
    coloured = drawn(a_run(500), no_color=False)
    plain = drawn(a_run(500))
    for name in ("forward", "backward", "data_wait", "sync", "other"):
        red, green, blue = bytes.fromhex(PHASE_COLOURS[name][1:])
        assert f"\x1b[38;2;{red};{green};{blue}m█" in coloured, name
    assert "bbbb" not in coloured
    assert not re.search(r"\x1b\[[0-9;]*[349][0-9]m", plain)  # bold and dim stay
    bar = next(line for line in plain.splitlines() if "bbbb" in line)
    assert bar.count("b") == 40
    assert bar.count("f") == 20
    assert len(bar) == 80


def test_the_curve_falls_and_evaluations_are_marked() -> None:
    curve = [(float(x), 100.0 - x) for x in range(100)]
    lines = [line.plain for line in draw_chart(curve, [(50.0, 50.0)], width=40, height=6)]
    assert len(lines) == 6
    assert {len(line) for line in lines} == {40}
    assert lines[0].startswith("90.00 ")  # the first tenth is not looked at
    assert lines[-1].startswith(" 1.00 ")
    places = [next(i for i, char in enumerate(line) if i > 5 and char != " ") for line in lines]
    assert places == sorted(places)
    assert sum(line.count("o") for line in lines) == 1
    assert 20 <= next(line.index("o") for line in lines if "o" in line) <= 25


def test_a_flat_curve_and_one_with_gaps() -> None:
    flat = draw_chart([(1.0, 2.0), (2.0, 2.0), (3.0, math.nan)], [], width=30, height=4)
    assert [line.plain for line in flat][-1].startswith("2.00 ⣀")
    assert [line.plain for line in draw_chart([], [], width=30, height=3)] == ["", "", ""]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([1.0], ""),
        ([1.0, None, math.nan], ""),
        ([0.0, 7.0], "▁█"),
        ([7.0, None, 0.0], "█▁"),
        ([2.0, 2.0, 2.0], "▁▁▁"),
        (list(range(8)), "▁▂▃▄▅▆▇█"),
        (list(range(8000)), "▁▁▂▂▂▃▃▃▃▄▄▄▅▅▅▆▆▆▆▇▇▇██"),
    ],
)
def test_a_sparkline(values: list[float | None], line: str) -> None:
    assert sparkline(values) == line


def test_a_plain_line_has_what_a_log_needs() -> None:
    console, clock = pipe(), Clock()
    with TrainView(console, clock=clock) as view:
        view(run_event())
        view(step_event(90))
        view(step_event(100))
        view(eval_event(100))
    assert written(console) == "step 100/1,000  loss 5.575  val 5.675  tokens/s 81,920  data wait 1.0%  eta 45 s\n"


def test_in_a_pipe_a_line_comes_every_ten_seconds_and_at_the_end() -> None:
    console, clock = pipe(), Clock()
    with TrainView(console, clock=clock) as view:
        view(run_event())
        for step in range(10, 260, 10):
            clock.now += 1.0
            view(step_event(step))
        view(end_event(250))
    lines = written(console).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["step 100/1,000", "step 200/1,000", "step 250/1,000"]
    assert "\x1b" not in written(console)


def test_the_end_is_not_said_twice() -> None:
    console = pipe()
    view = TrainView(console, clock=Clock())
    for event in (run_event(steps=100), step_event(100), eval_event(100), end_event(100)):
        view(event)
    assert len(written(console).splitlines()) == 1


def test_messages_stay_and_cannot_move_the_cursor() -> None:
    console = pipe()
    TrainView(console)({"kind": "message", "text": "Going on\x1b[2J from [bold]step[/] 500\nwith care"})
    assert written(console) == "Going on [2J from [bold]step[/] 500\nwith care\n"


def test_a_model_cannot_move_the_cursor() -> None:
    lines = screen([*a_run(100), sample_event(100, "\x1b[2J\x07 bell\r\n\u202ehidden")], height=40)
    assert "model  [2J bell hidden" in lines
    assert not any("\x1b[2J" in line for line in lines)


def test_wide_characters_are_cut_by_their_cells() -> None:
    from rich.cells import cell_len

    event = {**sample_event(100, "漢字" * 60), "prompt": "日本語" * 60}
    lines = screen([*a_run(100), event], width=41, height=40)
    assert max(map(cell_len, lines)) <= 41
    assert any(line.startswith("text   …") for line in lines)


def test_numbers_that_are_none_are_left_out() -> None:
    broken = {"loss": math.nan, "grad_norm": math.inf, "mfu": None, "tokens_per_second": math.nan, "skipped": 3}
    events = [run_event(), step_event(10), step_event(20, **broken), eval_event(20, val_loss=math.nan)]
    text = "\n".join(screen(events))
    assert "loss no number" in text
    assert "skipped 3" in text
    assert "nan" not in text
    console = pipe()
    view = TrainView(console, clock=Clock())
    for event in events:
        view(event)
    assert written(console).startswith("step 20/1,000  loss -  tokens/s -")


def test_events_with_little_in_them_and_unknown_ones_are_no_error() -> None:
    odd: list[dict[str, Any]] = [
        {"kind": "surprise"},
        {},
        {"kind": "step", "step": 10},
        {"kind": "eval", "step": 10},
        {"kind": "sample", "step": 10},
        {"kind": "checkpoint"},
        {"kind": "message"},
        {"kind": "run"},
        {"kind": "end"},
        {"kind": "loader", "batches": 10},
    ]
    for console in (terminal(), pipe()):
        view = TrainView(console)
        with view:
            for event in odd:
                view(event)
    assert screen(odd)
    assert screen([])


def test_unknown_spans_are_shown_too() -> None:
    text = "\n".join(screen([run_event(), step_event(10, spans={"forward": 1.0, "all_reduce": 1.0})]))
    assert "? all reduce 50.0%" in text


def test_quiet_says_nothing() -> None:
    for console in (terminal(), pipe()):
        with TrainView(console, quiet=True) as view:
            for event in a_run(1000):
                view(event)
            view.say("hello")
        assert written(console) == ""


def test_the_screen_is_left_clean() -> None:
    console = terminal()

    def stopped_half_way() -> None:
        with TrainView(console) as view:
            for event in a_run(500):
                view(event)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_half_way()
    text = written(console)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    last = re.sub(r"\x1b\[[0-9;]*m", "", text).rpartition("model  a mat")[2]
    assert last.count("\x1b[1A\x1b[2K") >= 15  # every line of the view is taken back
    assert re.sub(r"\x1b\[(2K|1A|\?25h)|\s", "", last) == ""


def test_a_terminal_that_cannot_gets_plain_lines() -> None:
    dumb = terminal()
    dumb._environ = {"TERM": "dumb"}
    ascii_only = pipe("ascii")
    for console in (dumb, ascii_only):
        view = TrainView(console)
        with view:
            for event in (run_event(datasets=["data/é"]), step_event(10), eval_event(10)):
                view(event)
            view.say("naïve")
        assert "step 10/1,000  loss" in written(console)
    assert "na?ve" in written(ascii_only)


def test_time_left_counts_down_and_leaves_the_warm_up_out() -> None:
    clock = Clock()
    status = RunStatus(clock)
    assert status.eta() is None
    status.add(run_event())
    assert status.eta() is None
    status.add(step_event(10, seconds=60.0))
    assert status.eta() == pytest.approx(99 * 60)
    status.add(step_event(20))
    assert status.eta() == pytest.approx(98 * 0.5)
    clock.now += 9
    assert status.eta() == pytest.approx(98 * 0.5 - 9)
    clock.now += 1000
    assert status.eta() == 0.0


def test_a_resumed_run_shows_its_own_rate() -> None:
    status = RunStatus(Clock())
    for event in (*a_run(500), *a_run(540, first=500)):
        status.add(event)
    assert (status.step, status.share) == (540, 0.54)
    assert status.eta() == pytest.approx(46 * 0.5)
    assert status.best is not None
    assert status.best[1] == 500


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59, "59 s"), (59.6, "1 min"), (250, "4 min"), (7810, "2 h 10 min"), (3 * 86400 + 14400, "3 d 4 h")],
)
def test_rough_times(seconds: float, words: str) -> None:
    assert rough(seconds) == words
