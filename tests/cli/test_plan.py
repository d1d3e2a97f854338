"""headrace plan: amounts as people write them, tables that fit, JSON that adds up, and errors that say what to do."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from conftest_cli import Headrace
from conftest_terminal import headrace_on_a_terminal
from headrace.cli.quantities import AMOUNT, COUNTS


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("3TB", 3e12),
        ("1.5TiB", 1.5 * 2**40),
        ("500GB", 5e11),
        ("15T", 15e12),
        ("1_000", 1000.0),
        ("2e9", 2e9),
        ("256MiB", 2**28),
        ("7k", 7000.0),
        ("12 PB", 12e15),
        ("1eb", 1e18),
    ],
)
def test_amounts(written: str, amount: float) -> None:
    assert AMOUNT.convert(written, None, None) == amount


@pytest.mark.parametrize("written", ["", "TB", "3XB", "-1GB", "3iB", "1,000", "three"])
def test_no_amounts(written: str) -> None:
    with pytest.raises(click.BadParameter, match="is no amount"):
        AMOUNT.convert(written, None, None)


def test_counts() -> None:
    assert COUNTS.convert("1,16, 64", None, None) == (1, 16, 64)
    for wrong in ("", "0", "1,,2", "-4", "many", "1.5"):
        with pytest.raises(click.BadParameter, match="with commas"):
            COUNTS.convert(wrong, None, None)


def test_a_plan_fits_into_eighty_columns(headrace_here: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = headrace_here("plan", "--bytes", "1TB", "--core-hour-price", "0.04", "--storage-gbps", "100")
    tables = done.stdout.split("\n\n")[1:3]
    lines = [line for table in tables for line in table.splitlines()]
    assert max(map(len, lines)) <= 80
    for workers in ("1 ", "16 ", "64 ", "512 ", "4,096 "):
        assert sum(line.startswith(workers) for line in lines) == 2
    assert "wait for storage" in done.stdout


def test_json_adds_up(headrace_here: Headrace) -> None:
    words = ("--tokens", "15T", "--format", "parquet=0.8", "--format", "jsonl.zst=0.2", "--array", "--json")
    found = json.loads(headrace_here("plan", *words, "-j", "64,512", "--core-hour-price", "0.05").stdout)
    assert set(found["profiles"]) == {"parquet", "jsonl.zst"}
    for one, workers in zip(found["predictions"], (64, 512), strict=True):
        assert one["workers"] == workers
        assert one["tokens"] == pytest.approx(15e12)
        assert one["cost"] == pytest.approx(one["seconds"] * workers / 3600 * 0.05)
        assert one["output_files"] == 2 * one["shards"] == 2 * one["tasks"]
        out = one["outcome"]
        parts = ("working", "storage_wait", "lost", "starting", "idle", "finishing")
        assert sum(out[part] for part in parts) == pytest.approx(workers * one["seconds"])


def test_a_rate_that_is_told_is_taken_as_it_is(headrace_here: Headrace) -> None:
    words = ("plan", "--bytes", "1TB", "-j", "10", "--mb-per-s-per-core", "50", "--bytes-per-token", "4", "--json")
    found = json.loads(headrace_here(*words).stdout)
    (one,) = found["predictions"]
    assert one["ideal_seconds"] == pytest.approx(1e12 / 50e6 / 10)
    assert one["tokens"] == pytest.approx(2.5e11)


def test_too_many_shards_are_told_with_the_option_that_helps(headrace_here: Headrace) -> None:
    done = headrace_here("plan", "--bytes", "100TB", "-j", "64", "--array")
    assert "--task-bytes 2048MiB" in done.stdout
    better = headrace_here("plan", "--bytes", "100TB", "-j", "64", "--array", "--task-bytes", "2048MiB")
    assert "max_map_count" not in better.stdout


def test_a_source_is_measured(headrace_here: Headrace, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"{number} turns of the wheel " * 40}) for number in range(400)]
    (tmp_path / "wheel.jsonl").write_text("\n".join(lines))
    words = ("plan", "--measure", tmp_path / "wheel.jsonl", "-t", "bytes", "--seconds", "1", "-j", "1", "--json")
    found = json.loads(headrace_here(*words).stdout)
    text = sum(len(json.loads(line)["text"]) for line in lines)
    assert found["predictions"][0]["text_bytes"] == pytest.approx(text, rel=0.01)
    assert found["profiles"]["jsonl"]["core_mb_per_s"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "How much text?"),
        (("--bytes", "1TB", "--tokens", "1T"), "Leave one of them out"),
        (("--bytes", "much"), "is no amount"),
        (("--bytes", "1TB", "--workers", "some"), "with commas"),
        (("--bytes", "1TB", "--format", "docx"), "--format docx: it must be one of jsonl"),
        (("--bytes", "1TB", "--format", "jsonl=half"), "'half' is no share"),
        (("--bytes", "1TB", "--format", "jsonl=0.5"), "the shares add up to 0.5"),
        (("--bytes", "1TB", "--tokenizer", "gpt2"), "--measure SOURCE"),
        (("--bytes", "1TB", "--mb-per-s-per-core", "0"), "--mb-per-s-per-core 0"),
        (("--bytes", "1TB", "--core-hour-price", "-1"), "--core-hour-price -1"),
        (("--bytes", "1TB", "--storage-gbps", "0"), "--storage-gbps 0"),
        (("--measure", "nowhere", "--format", "jsonl"), "Leave --format out"),
    ],
)
def test_mistakes(headrace_here: Headrace, words: tuple[str, ...], message: str) -> None:
    assert message in headrace_here("plan", *words, check=2).stderr


GUIDE = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```\n\$ (headrace plan .*?)\n(.*?)^```$", GUIDE, re.M | re.S)


def test_the_guide_shows_all_three_sizes() -> None:
    assert [shlex.split(command)[2:4] for command, _ in SHOWN] == [
        ["--bytes", "1TB"],
        ["--bytes", "100TB"],
        ["--tokens", "15T"],
    ]


@pytest.mark.parametrize(("command", "printed"), SHOWN, ids=lambda value: str(value)[:28])
def test_the_guide_shows_what_the_command_prints(
    command: str, printed: str, headrace_here: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert headrace_here(*shlex.split(command)[1:]).stdout.strip() == printed.strip()


def test_a_plan_on_a_terminal_is_no_wider_than_it() -> None:
    shown = headrace_on_a_terminal("plan", "--bytes", "100TB", "-j", "1,4096", "--core-hour-price", "0.04").finish()
    assert shown.code == 0
    assert shown.widest <= 80
    assert "vm.max_map_count" in " ".join(shown.text.split())
