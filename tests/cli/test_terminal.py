"""Every command on real terminals: wide and narrow ones, without colour, without the characters, and in a pipe."""

from __future__ import annotations

import _thread
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest_events import SPANS, a_run, run_event, step_event
from conftest_pipeline import make_texts, write_jsonl
from conftest_terminal import Terminal, headrace_on_a_terminal
from headrace import prepare
from headrace.cli.characters import LOOKALIKES
from headrace.cli.messages import folded
from headrace.cli.output import amount, count, visible
from headrace.cli.stopping import LONGEST, Stopped, how_to_go_on, stopping
from headrace.cli.tables import plain_table, print_table
from headrace.cli.theme import LETTERS, phase_letter, phase_style, terminal_theme
from headrace.cli.tokenizer import in_thread
from headrace.diagnosis.report import PHASES
from headrace.errors import Interrupted
from headrace.pages.style import PHASE_COLOURS
from headrace.telemetry import EventLog
from headrace.training.spans import SPANS as LOOP_SPANS

# All in one process for each terminal, which spares most of the time.
COMMANDS = {
    "inspect data": 0,
    "inspect data --chunk 1 --chunk-size 128": 0,
    "inspect data --document 0": 0,
    "verify data": 0,
    "prepare tales.jsonl --dry-run": 0,
    "diagnose training runs/slow": 0,
    "diagnose training runs/fast": 0,
    "diagnose compare slow.json fast.json": 0,
    "report runs/fast": 0,
    "inspect nowhere": 1,
    "inspect data --chunk 99999": 2,
    "inspect data --nope": 2,
    "diagnose --help": 0,
    "--help": 0,
}
RUN_ALL = """
import shlex, sys
from headrace.cli import main
for line in sys.argv[1:]:
    print("$", line, flush=True)
    sys.argv = ["headrace", *shlex.split(line)]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print("=", code, flush=True)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, two runs and their reports, under short names."""
    folder = tmp_path_factory.mktemp("terminal")
    texts = ["a naïve café in 日本\n\twith a tab, and \x1b[31mred\x1b[0m", *make_texts(2000)]
    prepare(write_jsonl(folder / "tales.jsonl", texts), out=folder / "data", val_fraction=0.05)
    spans = {**dict.fromkeys(SPANS, 0.0), "data_wait": 0.4, "forward": 0.1}
    slow = [run_event(), *(step_event(step, spans=spans) for step in range(10, 110, 10))]
    for name, events in (("slow", slow), ("fast", list(a_run(100)))):
        log = EventLog(folder / "runs" / name / "events.jsonl")
        for event in events:
            log.write_event(event)
        log.close()
        _write_report(folder, name)
    return folder


def _write_report(folder: Path, name: str) -> None:
    from headrace.diagnosis.training import diagnose_run_folder

    diagnose_run_folder(folder / "runs" / name).save(folder / f"{name}.json")


def sections(lines: list[str]) -> dict[str, list[str]]:
    """What each command wrote, once its exit code is the right one."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("$ "):
            name = line[2:]
            found[name] = []
        elif line.startswith("= "):
            assert int(line[2:]) == COMMANDS[name], (name, found[name])
        else:
            found[name].append(line)
    assert found.keys() == COMMANDS.keys()
    return found


def all_commands(place: Path, **options: Any) -> Any:
    return Terminal([sys.executable, "-c", RUN_ALL, *COMMANDS], cwd=place, **options).finish()


def piped(place: Path, *commands: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", RUN_ALL, *(commands or COMMANDS)],
        cwd=place,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def wide(place: Path) -> dict[str, list[str]]:
    return sections(all_commands(place, columns=200).lines)


def words_of(lines: list[str]) -> list[str]:
    """Without what draws lines, which depends on the room."""
    return [word for word in re.sub(r"[─│├└█▏▎▍▌▋▊▉]", " ", " ".join(lines)).split() if word]


@pytest.mark.parametrize("columns", [80, 60])
def test_every_line_fits_and_no_word_is_cut(columns: int, place: Path, wide: dict[str, list[str]]) -> None:
    shown = all_commands(place, columns=columns)
    assert shown.coloured
    assert shown.cursor_visible
    assert shown.column == 0
    for name, lines in sections(shown.lines).items():
        if name.endswith("--help") and columns < 80:
            continue  # examples are made for 80
        assert max(map(len, lines)) <= columns, (name, max(lines, key=len))
        if "--dry-run" not in name:  # which has paths that may be wider than the terminal
            assert set(words_of(lines)) == set(words_of(wide[name])), name


def test_without_colour_the_words_are_the_same(place: Path, wide: dict[str, list[str]]) -> None:
    shown = all_commands(place, columns=200, environment={"NO_COLOR": "1"})
    assert not shown.coloured
    assert sections(shown.lines) == wide


def test_a_terminal_that_cannot_move_its_cursor_gets_no_codes(place: Path, wide: dict[str, list[str]]) -> None:
    shown = all_commands(place, environment={"TERM": "dumb"})
    assert "\x1b" not in shown.raw
    assert shown.widest <= 80
    found = sections(shown.lines)
    for name in ("inspect data", "verify data", "diagnose training runs/slow", "inspect data --chunk 99999"):
        assert words_of(found[name]) == words_of(wide[name])


def test_a_terminal_without_the_characters(place: Path) -> None:
    shown = all_commands(place, environment={"PYTHONIOENCODING": "ascii"})
    assert shown.raw.isascii()
    assert shown.widest <= 80
    found = sections(shown.lines)
    assert any(re.fullmatch(r" *128-255 #+-? +\d+", line) for line in found["inspect data"])
    assert any(line.startswith("|- data wait") for line in found["diagnose training runs/slow"])
    assert "a na?ve caf? in ??" in found["inspect data --document 0"]


def test_in_a_pipe_there_are_no_codes_and_lines_are_whole(place: Path) -> None:
    done = piped(place)
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    assert "\x1b" not in stdout + stderr
    assert "\twith a tab, and ␛[31mred␛[0m" in stdout
    assert "error: There is no dataset at nowhere. Make one with: headrace prepare SOURCE --out nowhere\n" in stderr
    assert "runs/fast/report.html" in stdout.splitlines()


def json_of(done: subprocess.CompletedProcess[bytes]) -> bytes:
    return done.stdout[done.stdout.index(b"{") : done.stdout.rindex(b"}") + 1]


def test_an_ascii_pipe_gets_the_same_json(place: Path) -> None:
    found = [
        json.loads(json_of(piped(place, "inspect data --document 0 --json", PYTHONIOENCODING=encoding)))
        for encoding in ("ascii", "utf-8")
    ]
    assert found[0] == found[1]
    assert "café in 日本" in found[0]["text"]


# Live views


def test_preparing_leaves_the_result_and_nothing_else(place: Path) -> None:
    shown = headrace_on_a_terminal("prepare", "tales.jsonl", "--out", "again", cwd=place).finish()
    assert shown.code == 0, shown.text
    assert "reading the plan" in shown.raw
    assert "reading the plan" not in shown.text
    assert shown.cursor_visible
    assert [line.split()[0] for line in shown.lines] == [
        "Tokenizing", "Prepared", "tokens", "chunks", "text", "on", "time", "stages", "Look",
    ]  # fmt: skip
    assert shown.widest <= 80


def test_ctrl_c_while_preparing(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "large.jsonl", make_texts(45_000))
    words = ["prepare", "large.jsonl", "--engine", "reference", "--workers", "2", "--task-bytes", "300000"]
    terminal = headrace_on_a_terminal(*words, cwd=tmp_path)
    terminal.wait_for("eta")
    terminal.interrupt()
    shown = terminal.finish()
    assert shown.code == 130, shown.text
    assert (shown.cursor_visible, shown.column) == (True, 0)
    assert shown.lines[-3:] == [
        "Stopped. What is finished is kept in data/large. To go on, run the same command",
        "again:",
        f"  headrace {' '.join(words)}",
    ]
    assert all(line.startswith("Tokenizing") for line in shown.lines[:-3]), shown.lines
    assert (tmp_path / "data" / "large" / ".headrace" / "plan.json").exists()


def test_ctrl_c_while_training(place: Path) -> None:
    options = "--size nano --seq-len 16 --batch-size 1 --steps 100000 --eval-every 50000 --log-every 1 --no-tensorboard"
    words = ["train", "data", *options.split(), "--out", "runs/new"]
    terminal = headrace_on_a_terminal(*words, cwd=place, environment={"OMP_NUM_THREADS": "1"})
    terminal.wait_for("tokens/s")
    terminal.interrupt()
    shown = terminal.finish()
    assert shown.code == 75, shown.text
    assert (shown.cursor_visible, shown.column) == (True, 0)
    assert shown.widest <= 80
    said = " ".join(shown.lines)
    assert re.search(r"Stopping after step (\d+): saving. Stopped by SIGINT after step \1; everything is saved. ", said)
    assert said.endswith("Run the same command again to go on from the newest checkpoint in runs/new/checkpoints.")
    assert len(shown.lines) == 3, shown.lines


# Tables


def table_at(width: int, *, terminal: bool = True) -> list[str]:
    table = plain_table("ms a text", "text", "one\nby one", "2\nthreads", "ids")
    table.columns[1].justify = "left"
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    table.add_row("gigatoken", "short 100 B", "0.0144", "0.0028", "it can only be loaded from a file")
    table.add_row("", "long 50.0 kB", "0.143", "", "exact")
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, theme=terminal_theme(), _environ={}
    )
    print_table(console, table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_a_table_folds_its_words_and_no_number() -> None:
    assert table_at(200)[3] == "gigatoken  short 100 B   0.0144   0.0028  it can only be loaded from a file"
    assert table_at(60)[3:5] == [
        "gigatoken  short 100 B   0.0144   0.0028  it can only be",
        f"{'loaded from a file':>60}",
    ]
    assert table_at(40, terminal=False)[3].startswith("gigatoken  short 100 B   0.0144   0.0028  it")


def test_where_a_table_has_no_room_its_rows_are_lines() -> None:
    assert table_at(40) == [
        "ms a text:",
        "gigatoken short 100 B",
        "  one by one 0.0144   2 threads 0.0028",
        "  ids it can only be loaded from a file",
        "gigatoken long 50.0 kB",
        "  one by one 0.143   ids exact",
    ]


# Being stopped


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *words: monkeypatch.setattr(sys, "argv", ["/usr/bin/headrace", *words])


def stop(error: type[BaseException], *words: str) -> None:
    with stopping("Nothing was written."):
        raise error(*words)


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (Interrupted, 75)])
def test_who_stops_a_command_reads_how_to_go_on(
    raised: type[BaseException], code: int, typed: Callable[..., None]
) -> None:
    typed("verify", "my data")
    with pytest.raises(Interrupted) as stopped:
        stop(raised)
    assert stopped.value.exit_code == code
    assert str(stopped.value) == (
        "Stopped. Nothing was written. To go on, run the same command again: headrace verify 'my data'"
    )


def test_what_was_said_inside_is_not_said_again() -> None:
    with pytest.raises(Stopped, match=r"^mine$"):
        stop(Stopped, "mine")


def test_a_command_of_a_thousand_files_is_not_repeated(typed: Callable[..., None]) -> None:
    typed("prepare", *(f"{number}.jsonl" for number in range(LONGEST)))
    assert how_to_go_on().endswith("run the same command again.")


def test_ctrl_c_does_not_wait_for_a_library_that_does_not_look() -> None:
    enough = threading.Event()

    def work() -> None:
        _thread.interrupt_main()
        enough.wait(60)

    with pytest.raises(KeyboardInterrupt):
        in_thread(work)
    assert not enough.is_set()
    enough.set()


def test_what_fails_in_the_thread_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0)


# Words


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("a short one", ["a short one"]),
        (
            "a longer one whose words are more than there is room for",
            ["a longer one whose words", "are more than there is room", "for"],
        ),
        ("Make one: headrace prepare SOURCE --out nowhere", ["Make one:", "  headrace prepare SOURCE --out nowhere"]),
        ("first\n  a list whose entries are long\n  b", ["first", "  a list whose entries are", "  long", "  b"]),
        ("/a/path/that/is/longer/than/the/terminal", ["/a/path/that/is/longer/than/the/terminal"]),
    ],
)  # fmt: skip
def test_messages_are_folded_between_words(message: str, lines: list[str]) -> None:
    assert folded(message, 30, used=3).split("\n") == lines


def test_a_text_cannot_steer_the_terminal() -> None:
    assert visible("a\tb\nc\x1b[31m\x07\x7f\x9b日\xa0") == "a\tb\nc␛[31m␇␡�日\xa0"


def test_numbers_and_their_nouns() -> None:
    assert [count(number, "shard") for number in (0, 1, 2000)] == ["0 shards", "1 shard", "2,000 shards"]
    assert [amount(number) for number in (999, 999_499, 999_600, 1_234_567)] == ["999", "999 k", "1 M", "1.23 M"]


def test_a_character_takes_the_room_of_one() -> None:
    assert {len(like) for like in LOOKALIKES.values()} == {1}
    assert all(like.isascii() for like in LOOKALIKES.values())


def test_every_phase_has_a_colour_and_a_letter() -> None:
    assert {*PHASES, *LOOP_SPANS} <= LETTERS.keys() & PHASE_COLOURS.keys()
    for names in (PHASES, LOOP_SPANS):
        assert len({phase_letter(name) for name in names}) == len(names)
    assert (phase_style("forward"), phase_style("new"), phase_letter("new")) == ("phase.forward", "label", "?")
