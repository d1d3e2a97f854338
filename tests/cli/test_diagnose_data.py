"""`headrace diagnose data` as it is typed, and what is left on the screen when measuring is stopped."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest_cli import Headrace
from conftest_events import a_run
from conftest_pipeline import make_texts, write_jsonl
from headrace import prepare
from headrace.cli import measuring as measuring_module
from headrace.cli.measuring import measuring
from headrace.cli.stopping import Stopped
from headrace.errors import Interrupted
from headrace.telemetry import EventLog

QUICK = ("--seconds", 0.3, "--seq-len", 64, "--batch-size", 4)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workplace")
    write_jsonl(folder / "tales.jsonl", make_texts(2000))
    for name in ("tales", "more"):
        prepare(folder / "tales.jsonl", out=folder / name, tokenizer="bytes", chunk_size=128)
    return folder


@pytest.fixture
def here(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(workplace)
    return workplace


def as_json(headrace: Headrace, *words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(headrace("diagnose", "data", *words, "--json").stdout)
    return found


def test_tables_for_people_fit_into_80_columns(
    headrace_here: Headrace, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "dumb")):  # a terminal of 80 columns, and no codes
        monkeypatch.setenv(name, value)
    done = headrace_here("diagnose", "data", "tales", *QUICK)
    tables, _, rest = done.stdout.partition("data tales\n")
    assert all(len(line.rstrip()) <= 80 for line in tables.splitlines())
    for words in (
        "loader, from memory",
        "copy limit",
        "time to open",
        "first batch",
        "minor page faults",
        "10 M tokens/s",
    ):
        assert words in tables
    assert re.search(r"batches +4 x 64 tokens, int64, shuffled", tables)
    assert re.search(r"loader +memory=populate", tables)
    assert "training waits for this data only above" in rest.replace("\n", " ")
    assert ("loader, cold" in tables) != ("Cold reading:" in rest)
    assert done.stderr == "Measuring ...\n"


def test_a_mixture_in_json_with_all_options(headrace_here: Headrace, here: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--dtype", "uint16", "--memory", "normal", "--seed", 3, "--keep-cache", "--tokens-per-second", 5000)
    report = as_json(headrace_here, "tales=0.75", "more=0.25", *QUICK, *words, "--html", page)
    facts = report["facts"]
    assert (report["kind"], report["subject"], report["tokens_per_second"]) == ("data", "tales more", 5000)
    assert (facts["dtype"], facts["memory"], facts["sequence_length"]) == ("uint16", "normal", 64)
    assert [row["tokens_per_second"] for row in facts["needs"]] == [5000]
    assert facts["measured"]["cold"] is None
    assert "left out by --keep-cache" in " ".join(report["missing"])
    assert "warm tokens per second" in page.read_text()


def test_the_chunk_size_is_the_usual_length(headrace_here: Headrace, here: Path) -> None:
    assert as_json(headrace_here, "tales", "--seconds", 0.2, "--keep-cache")["facts"]["sequence_length"] == 128


def test_the_rate_of_a_run(headrace_here: Headrace, here: Path, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "run" / "events.jsonl")
    for event in a_run(50):
        log.write_event(event)
    log.close()
    report = as_json(headrace_here, "tales", *QUICK, "--keep-cache", "--run", tmp_path / "run")
    assert report["tokens_per_second"] == pytest.approx(10 * 4096 / 0.5 * 0.93 / 0.92, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere",), 1, "headrace prepare SOURCE --out nowhere"),
        (("tales=0.5", "more"), 2, "more has no weight"),
        (("tales", "--seconds", "0"), 2, "--seconds 0 cannot be"),
        (("tales", "--run", "runs/none"), 2, "no finished steps"),
        (("tales", "--seq-len", "100000000"), 2, "too few for a sequence"),
        ((), 2, "Missing argument"),
    ],
)
def test_mistakes(headrace_here: Headrace, here: Path, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in headrace_here("diagnose", "data", *words, check=code).stderr


# Stopped


@pytest.mark.parametrize("words", [("data", "tales"), ("tokenization", "tales.jsonl")], ids=lambda words: words[0])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_stopped_while_it_measures(words: tuple[str, ...], number: signal.Signals, code: int, workplace: Path) -> None:
    command = [sys.executable, "-m", "headrace", "diagnose", *words, "--seconds", "600", "--json"]
    with subprocess.Popen(command, cwd=workplace, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "Measuring ...\n"
        process.send_signal(number)
        said, found = process.stderr.read(), json.loads(process.stdout.read())
    assert process.returncode == code
    words = f"Stopped. Nothing was written. To go on, run the same command again: headrace {shlex.join(command[3:])}"
    assert said == f"{words}\n"
    assert found == {"error": words, "exit_code": code}


@contextmanager
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=40, _environ={"TERM": "xterm"})
    monkeypatch.setattr(measuring_module, "err_console", lambda: terminal)
    yield screen


def measure_until(raised: type[BaseException]) -> None:
    with measuring() as tell:
        tell("from memory, round 1")
        raise raised


@pytest.mark.parametrize(("raised", "kind"), [(KeyboardInterrupt, Stopped), (Interrupted, Interrupted)])
def test_the_line_is_clean_when_it_is_stopped(
    raised: type[BaseException], kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_a_terminal(monkeypatch) as screen:
        with pytest.raises(kind, match="Nothing was written") as stopped:
            measure_until(raised)
        assert "from memory, round 1 ..." in screen.getvalue()
        assert screen.getvalue().endswith("\r\x1b[2K")
    assert stopped.value.exit_code == {Stopped: 130, Interrupted: 75}[kind]


def test_the_line_is_no_longer_than_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_terminal(monkeypatch) as screen, measuring() as tell:
        tell("x" * 100)
    assert screen.getvalue().count("x") == 40
