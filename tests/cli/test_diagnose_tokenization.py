"""`headrace diagnose tokenization` as it is typed."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest_cli import Headrace, finish
from conftest_pipeline import make_texts, write_jsonl

ROOT = Path(__file__).parents[2]
QUICK = ("--seconds", 0.5, "--workers", 2)


@pytest.fixture
def tales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "tales.jsonl", make_texts(1_500))
    return "tales.jsonl"


def as_json(headrace: Headrace, *words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(headrace("diagnose", "tokenization", *words, "--json").stdout)
    return found


def test_all_figures_are_there_and_agree(headrace_here: Headrace, tales: str) -> None:
    report = as_json(headrace_here, tales, *QUICK, "--tokens-per-second", 20_000, "--epochs", 3)
    facts = report["facts"]
    assert (report["kind"], report["subject"], report["tokens_per_second"]) == ("tokenization", tales, 20_000)
    assert report["verdict"]

    texts = make_texts(1_500)
    corpus = facts["corpus"]
    assert corpus["counted"]
    assert corpus["documents"] == len(texts)
    assert corpus["text_bytes"]["value"] == pytest.approx(sum(map(len, texts)))
    assert corpus["tokens"]["low"] <= corpus["tokens"]["value"] <= corpus["tokens"]["high"]

    engines = {row["engine"]: row for row in facts["engines"]}
    assert engines.keys() == {"gigatoken", "fastokens", "tokenizers"}
    assert all(row["exact"] for row in engines.values())

    # Every engine, every length, every way: measured, or named as left out.
    timed = {(row["engine"], row["length"], row["way"]) for row in facts["timings"]}
    ways = ("one by one", "in 8s", "in 64s", "2 threads")
    wanted = {(engine, length, way) for engine in engines for length in ("short", "medium", "long") for way in ways}
    left_out = {
        key for key in wanted if any(note.startswith("{}, {} texts {}:".format(*key)) for note in report["missing"])
    }
    assert timed - {("memory map", length, "prepared") for length in ("short", "medium", "long")} == wanted - left_out
    for row in facts["timings"]:
        assert row["ms_low"] <= row["ms_per_text"] <= row["ms_high"]
        assert row["ms_per_call"] == pytest.approx(row["texts_per_call"] * row["ms_per_text"])
        assert row["mb_per_s"] == pytest.approx(row["text_bytes"] / row["ms_per_text"] / 1e3)

    documents = {(row["engine"], row["way"]): row for row in facts["documents"]}
    for row in documents.values():
        expected = corpus["text_bytes"]["value"] / 1e6 / row["mb_per_s_core"]
        assert row["seconds"]["value"] == pytest.approx(expected)
    for row in facts["shares"]:
        speed = documents[row["engine"], row["way"]]["tokens_per_s_core"]
        assert row["share"] == pytest.approx(20_000 / (20_000 + speed))
    for row in facts["savings"]:
        assert row["in_loop"]["value"] == pytest.approx(
            3 * documents[row["engine"], row["way"]]["seconds"]["value"] / 3600
        )
        rest = row["prepare"]["value"] + row["reading"]["value"]
        assert row["saved"]["value"] == pytest.approx(row["in_loop"]["value"] - rest)
    assert len(facts["savings"]) == len(documents) - 1


def test_tables_for_people_fit_into_80_columns(
    headrace_here: Headrace, tales: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "dumb")):  # a terminal of 80 columns, and no codes
        monkeypatch.setenv(name, value)
    done = headrace_here("diagnose", "tokenization", tales, *QUICK)
    tables, _, rest = done.stdout.partition(f"tokenization {tales}")
    assert all(len(line.rstrip()) <= 80 for line in tables.splitlines())
    for words in (
        "MB/s a core",
        "reference",
        "one",
        "in 64s",
        "prepared",
        "step at",
        "10 k/s",
        "1 M/s",
        "memory map",
    ):
        assert words in tables
    assert re.search(r"corpus +tales.jsonl: .* in 1,500 documents, .* tokens", tables)
    assert f"headrace prepare {tales}" in rest
    assert done.stderr == "Measuring ...\n"


def test_the_rate_of_a_run(headrace_here: Headrace, tales: str, tmp_path: Path) -> None:
    from conftest_events import a_run
    from headrace.telemetry import EventLog

    log = EventLog(tmp_path / "run" / "events.jsonl")
    for event in a_run(50):
        log.write_event(event)
    log.close()
    report = as_json(headrace_here, tales, *QUICK, "--tokenizer", "bytes", "--run", tmp_path / "run")
    assert report["tokens_per_second"] == pytest.approx(10 * 4096 / 0.5 * 0.93 / 0.92, rel=1e-6)
    assert {row["tokens_per_second"] for row in report["facts"]["shares"]} == {report["tokens_per_second"]}
    engines = report["facts"]["engines"]
    assert [(row["engine"], row["exact"]) for row in engines] == [
        ("bytes", True),
        ("gigatoken", None),
        ("fastokens", None),
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere.jsonl",), 2, "nowhere.jsonl"),
        (("tales.jsonl", "--tokenizer", "./none.json"), 2, "No tokenizer at './none.json'"),
        (("tales.jsonl", "--dataset", "tinystories"), 2, "one corpus is measured at a time"),
        (("tales.jsonl", "--seconds", "0"), 2, "--seconds 0 cannot be"),
        (("tales.jsonl", "--run", "runs/none"), 2, "no finished steps"),
    ],
)
def test_mistakes(headrace_here: Headrace, tales: str, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in headrace_here("diagnose", "tokenization", *words, check=code).stderr


def test_the_script_of_the_guides(
    headrace_here: Headrace, tales: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "scripts/diagnose_tokenization.py"
    monkeypatch.setattr(
        sys, "argv", [name, "--dataset", tales, "--num_workers=2", "--tokenizer", "bytes", "--seconds", "0.2", "--json"]
    )
    done = finish(lambda: runpy.run_path(str(ROOT / name), run_name="__main__"), capsys, 0)
    assert done.stderr.startswith(
        f"This is: headrace diagnose tokenization --dataset {tales} --num-workers 2 --tokenizer bytes "
        "--seconds 0.2 --json\n"
    )
    assert json.loads(done.stdout)["subject"] == tales
