"""Tokenizing measured: the arithmetic with made-up numbers, the sample, and a wrong engine that is noticed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from conftest_events import a_run, step_event
from headrace.diagnosis.report import Report, load_report
from headrace.diagnosis.tokenization import TokenizationConfig, diagnose_tokenization, rate_of_run
from headrace.diagnosis.tokenization_corpus import CorpusTimer, Cost, for_corpus, measured_parts
from headrace.diagnosis.tokenization_estimate import (
    Estimate,
    difference,
    extrapolate,
    rate_with,
    saving,
    share_of_step,
)
from headrace.diagnosis.tokenization_findings import Findings, duration, fixes, percent, prepare_command, said, verdict
from headrace.diagnosis.tokenization_sample import PLACES, Part, Sample, clip, cut_texts, take_sample
from headrace.diagnosis.tokenization_timing import BATCHED, MEMORY_MAP, ONE, PREPARED, Cell, MappedTokens, run_rounds
from headrace.errors import SourceNotFound, TokenizerError, UsageError
from headrace.sources import open_source
from headrace.tokenizers import Tokenizer, load_tokenizer
from headrace.tokenizers.base import Engine, Ids, Unsupported

# Extrapolation


def test_parts_of_one_rate_have_no_error() -> None:
    found = extrapolate([10, 20, 30], [1, 2, 3], total=6000)
    assert found.value == pytest.approx(600)
    assert found.low == pytest.approx(600)
    assert found.high == pytest.approx(600)


def test_the_interval_is_that_of_the_mean_when_parts_are_of_one_size() -> None:
    amounts = [8.0, 12.0, 10.0, 10.0]
    found = extrapolate([1, 1, 1, 1], amounts, total=100)
    half = 3.182 * math.sqrt(np.var(amounts, ddof=1) / 4)
    assert found.value == pytest.approx(1000)
    assert found.error == pytest.approx(100 * half)
    assert (found.low, found.high) == pytest.approx((1000 - 100 * half, 1000 + 100 * half))


def test_the_interval_holds_the_truth_about_19_times_in_20() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        sizes = rng.uniform(50, 150, 18)
        amounts = sizes * rng.normal(2.0, 0.3, 18)
        found = extrapolate(sizes.tolist(), amounts.tolist(), total=1.0)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 2.0 <= found.high
    assert 0.91 <= held / 400 <= 0.98


def test_one_part_has_no_interval() -> None:
    found = extrapolate([10], [5], total=100)
    assert (found.value, found.low, found.high, found.error) == (50, None, None, None)
    assert said(found) == "about 50 h"


def test_a_counted_corpus_goes_by_its_text_and_another_by_its_files() -> None:
    parts = [Part("a", [b"x" * 100], input_bytes=50, text_bytes=200), Part("b", [b"x" * 100], 50, 200)]
    counted = Sample(parts, 2, corpus_input_bytes=1_000, corpus_text_bytes=4_000)
    by_files = Sample(parts, 2, corpus_input_bytes=1_000)
    assert for_corpus(counted, parts, [3, 3]).value == pytest.approx(3 * 4_000 / 100)
    # Each part's 3 stand for 100 of the 200 bytes of text that lie in 50 bytes of file.
    assert for_corpus(by_files, parts, [3, 3]).value == pytest.approx(6 * 1_000 / 50)


# Shares and savings


def test_share_of_a_step() -> None:
    assert share_of_step(50_000, 50_000) == 0.5
    assert share_of_step(50_000, 450_000) == pytest.approx(0.1)
    assert rate_with(50_000, 450_000) == pytest.approx(45_000)


def test_savings_add_up() -> None:
    found = saving(
        "tokenizers",
        ONE,
        in_loop=Estimate(36_000, 32_400, 39_600),
        once=Estimate(7_200, 7_200, 7_200),
        reading=Estimate(36, 36, 36),
        epochs=3,
        workers=4,
    )
    assert (found.in_loop.value, found.in_loop.error) == pytest.approx((30, 3))
    assert found.prepare.value == pytest.approx(0.5)  # once, on four cores
    assert found.reading.value == pytest.approx(0.03)
    assert found.saved.value == pytest.approx(30 - 0.5 - 0.03)
    assert found.saved.error == pytest.approx(3)


def test_errors_of_separate_measurements_add_as_squares() -> None:
    assert difference(Estimate(10, 7, 13), Estimate(2, -2, 6)) == Estimate(8, 3, 13)
    assert difference(Estimate(10, 7, 13), Estimate(2)) == Estimate(8)


def cost(engine: str, way: str, rate: float, seconds: float) -> Cost:
    estimate = Estimate(seconds, 0.9 * seconds, 1.1 * seconds)
    return Cost(
        engine=engine,
        way=way,
        mb_per_s_core=rate / 250_000,
        tokens_per_s_core=rate,
        clock_over_cpu=1.0,
        seconds=estimate,
        passes=3,
    )


def made_up(**more: Any) -> Findings:
    costs = [
        cost("gigatoken", ONE, 20e6, 180),
        cost("gigatoken", BATCHED, 36e6, 100),
        cost("fastokens", ONE, 10e6, 360),
        cost("fastokens", BATCHED, 12e6, 300),
        cost("tokenizers", ONE, 250e3, 14_400),
        cost("tokenizers", BATCHED, 500e3, 7_200),
        cost(MEMORY_MAP, PREPARED, 1e9, 3.6),
    ]
    settings: dict[str, Any] = {
        "source": "web.jsonl",
        "tokenizer": "headrace-32k",
        "reference": "tokenizers",
        "exact": ["tokenizers", "fastokens"],
        "costs": costs,
        "rate": 250e3,
        "epochs": 1.0,
        "workers": 2,
    }
    return Findings(**{**settings, **more})


def test_the_fastest_engine_is_one_that_is_exact() -> None:
    assert made_up().fastest == "fastokens"
    assert made_up(exact=["tokenizers", "gigatoken", "fastokens"]).fastest == "gigatoken"
    assert made_up(exact=["tokenizers"]).fastest == "tokenizers"


def test_verdict_at_a_rate() -> None:
    assert verdict(made_up()) == (
        "At 250,000 tokens/s, tokenizing one by one with tokenizers is 50% of a step, and reading it prepared <0.1%: "
        "4.00 ± 0.40 h against 3.6 s for an epoch."
    )
    assert "tokenizing is not what is slow" in verdict(made_up(rate=100.0))
    assert fixes(made_up(rate=100.0)) == []


def test_verdict_without_a_rate() -> None:
    assert verdict(made_up(rate=None, epochs=2.0)) == (
        "Tokenizing web.jsonl one by one with tokenizers takes 8.00 ± 0.80 h of one core for 2 epochs, reading it "
        "prepared 7.2 s."
    )
    rates = {row["tokens_per_second"] for row in made_up(rate=None).shares()}
    assert rates == {1e4, 1e5, 1e6}


def test_fixes_say_what_to_type_and_what_it_brings() -> None:
    prepare, batch, engine = fixes(
        made_up(source="my texts.jsonl", tokenizer="m.model", options={"text_field": "body"})
    )
    assert prepare.advice.endswith("\nheadrace prepare 'my texts.jsonl' --tokenizer m.model --text-field body")
    assert prepare.speedup == pytest.approx(2.0, rel=1e-3)
    assert "4.00 ± 0.40 h" in prepare.evidence
    assert "2.0x as fast" in batch.evidence
    assert batch.speedup == pytest.approx(2 / 1.5)
    assert engine.evidence.startswith("fastokens in 64s is 48x as fast as tokenizers one by one")
    assert engine.advice.endswith("headrace train --text 'my texts.jsonl' --tokenizer m.model")
    assert {fix.speedup for fix in fixes(made_up(rate=None))} == {1.0}


def test_prepare_command_leaves_out_what_is_the_default() -> None:
    assert prepare_command("python-stdlib", "headrace-32k", {}) == "headrace prepare python-stdlib"


@pytest.mark.parametrize(
    ("hours", "text"),
    [(120, "120 h"), (2.5, "2.5 h"), (0.5, "30 min"), (1 / 3600, "1.0 s"), (0.0123 / 3600, "12 ms"), (0, "0.0 ms")],
)
def test_duration(hours: float, text: str) -> None:
    assert duration(hours) == text


@pytest.mark.parametrize(("share", "text"), [(0.3, "30%"), (0.042, "4.2%"), (0.0013, "0.1%"), (0.0001, "<0.1%")])
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


# The sample


def write_corpus(path: Path, count: int = 6_000) -> list[str]:
    """Every document says where it stands."""
    texts = [f"<{number}> é日本 " + "water wheel " * (number % 40) for number in range(count)]
    data = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode()
    path.write_bytes(zstandard.compress(data) if path.suffix == ".zst" else data)
    return texts


def numbers(sample: Sample) -> list[int]:
    return [int(text[1 : text.index(b">")]) for text in sample.texts if text.startswith(b"<")]


def test_the_sample_is_the_same_again_and_another_for_another_seed(tmp_path: Path) -> None:
    write_corpus(tmp_path / "a.jsonl")
    source = open_source(tmp_path / "a.jsonl")
    first = take_sample(source, 2_000, seed=1)
    assert first == take_sample(source, 2_000, seed=1)
    assert numbers(first) != numbers(take_sample(source, 2_000, seed=2))


def test_the_sample_is_spread_over_all_of_the_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path / "a.jsonl", 60_000)  # 18 MB, so that there are many places to enter it
    sample = take_sample(open_source(tmp_path / "a.jsonl"), 2_000)
    found = numbers(sample)
    assert len(set(found)) == len(found)  # no document twice
    assert found == sorted(found)
    assert {number // 15_000 for number in found} == {0, 1, 2, 3}
    assert sample.places > PLACES // 2
    assert all(part.sample_bytes <= 2_000 + 600 for part in sample.parts)


def test_small_files_are_documents_of_one_part(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}.txt").write_text(f"<{number}> " + "mill " * 50)
    sample = take_sample(open_source(tmp_path), 1_000)
    assert sample.places == PLACES
    assert max(len(part.texts) for part in sample.parts) > 1
    assert sample.corpus_documents == 200


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst"])
def test_a_small_corpus_is_counted(tmp_path: Path, name: str) -> None:
    texts = write_corpus(tmp_path / name)
    sample = take_sample(open_source(tmp_path / name), 2_000)
    assert sample.corpus_documents == len(texts)
    assert sample.corpus_text_bytes == sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst"])
def test_a_corpus_that_is_not_counted_is_extrapolated(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.diagnosis.tokenization_sample.COUNTED_BYTES", 0)
    texts = write_corpus(tmp_path / name, 30_000)
    sample = take_sample(open_source(tmp_path / name), 4_000)
    assert sample.corpus_text_bytes is None
    _, parts = measured_parts(sample)
    found = for_corpus(sample, parts, [float(part.sample_bytes) for part in parts])
    truth = sum(len(text.encode()) for text in texts)
    assert found.value == pytest.approx(truth, rel=0.15)


def test_a_corpus_of_one_place_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One document. " * 1_000)
    sample = take_sample(open_source(tmp_path / "a.txt"), 500)
    assert sample.places == 1
    assert "1 places only" in sample.notes[0]
    assert sample.texts[0].startswith(b"One document.")


def test_a_corpus_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(UsageError, match="no text"):
        take_sample(open_source(tmp_path / "a.jsonl"), 500)


@pytest.mark.parametrize("length", [100, 2_000, 50_000])
def test_texts_have_about_the_length_and_whole_characters(length: int) -> None:
    part = Part("a", ["é日本𝄞x".encode() * 30_000])
    texts = cut_texts([part], length, 5, seed=3)
    assert len(texts) == 5
    for text in texts:
        assert length - 4 <= len(text) <= length
        text.decode()
    assert texts == cut_texts([part], length, 5, seed=3)


def test_a_short_sample_gives_one_text() -> None:
    assert cut_texts([Part("a", [b"abc", b"def"])], 100, 5) == [b"abc\n\ndef"]


def test_clip_cuts_between_characters() -> None:
    text = "aé日".encode()
    assert [clip(text, length) for length in (1, 2, 3, 5, 6)] == [b"a", b"a", "aé".encode(), "aé".encode(), text]


# Measuring


class Doubling:
    """An engine whose rows are twice as long as its texts."""

    name = "doubling"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        self.calls.append(len(texts))
        return [np.zeros(2 * len(text), np.uint32) for text in texts]


def test_a_cell_counts_what_it_did() -> None:
    engine = Doubling()
    cell = Cell("doubling", "short", "in 8s", [b"12345", b"1234567"] * 2, 8, engine.encode)
    run_rounds([cell], 0.02, lambda number: None)
    timing = cell.timing()
    assert set(engine.calls) == {8}  # four texts go round
    assert sum(engine.calls[1:]) == sum(one.texts for one in cell.rounds)  # the first call warms up
    assert timing.text_bytes == pytest.approx(6)
    assert timing.rounds == len(cell.rounds) >= 3
    assert timing.ms_low <= timing.ms_per_text <= timing.ms_high
    assert timing.ms_per_call == pytest.approx(8 * timing.ms_per_text)
    assert timing.tokens_per_s == pytest.approx(2 * 1e6 * timing.mb_per_s)
    assert timing.mb_per_s == pytest.approx(6e-6 / (timing.ms_per_text / 1e3))


def test_mapped_tokens_are_the_tokens(tmp_path: Path) -> None:
    rows = [np.array(row, np.uint32) for row in ([1, 2, 3], [], [40_000, 5])]
    mapped = MappedTokens(tmp_path / "t.bin", np.dtype(np.uint16), rows)
    assert [row.tolist() for row in mapped.next_rows([b""] * 5)] == [[1, 2, 3], [], [40_000, 5], [1, 2, 3], []]
    assert [row.tolist() for row in mapped.next_rows([b""])] == [[40_000, 5]]
    mapped.open()
    assert mapped.next_rows([b""])[0].dtype == np.int64


def test_every_engine_is_measured_in_both_ways_on_documents(tmp_path: Path) -> None:
    write_corpus(tmp_path / "a.jsonl", 400)
    sample = take_sample(open_source(tmp_path / "a.jsonl"), 2_000)
    tokenizer = load_tokenizer("headrace-32k")
    timer = CorpusTimer(tokenizer, ["gigatoken", "tokenizers"], sample, tmp_path)
    timer.run(0.0, lambda text: None)
    costs = timer.costs()
    keys = [(found.engine, found.way) for found in costs]
    assert keys == [
        *(("gigatoken", way) for way in (ONE, BATCHED)),
        *(("tokenizers", way) for way in (ONE, BATCHED)),
        (MEMORY_MAP, PREPARED),
    ]
    texts = [text for part in timer.parts for text in part.texts]
    assert sum(timer.tokens) == sum(map(len, tokenizer.reference().encode(texts)))


# The whole


@pytest.fixture
def config(tmp_path: Path) -> TokenizationConfig:
    write_corpus(tmp_path / "a.jsonl", 600)
    return TokenizationConfig(source=str(tmp_path / "a.jsonl"), seconds=0.2, workers=2)


class WrongOn:
    """The reference, except on texts that hold one string."""

    name = "gigatoken"

    def __init__(self, right: Engine, bad: bytes) -> None:
        self._right, self._bad = right, bad

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        rows = self._right.encode(texts)
        return [row + np.uint32(1) if self._bad in text else row for row, text in zip(rows, texts, strict=True)]


def test_a_wrong_engine_is_shown_and_not_advised(config: TokenizationConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    real = type(load_tokenizer("headrace-32k")).fast

    def fast(self: Tokenizer, engine: str) -> Engine:
        return WrongOn(self.reference(), "日本".encode()) if engine == "gigatoken" else real(self, engine)

    monkeypatch.setattr(type(load_tokenizer("headrace-32k")), "fast", fast)
    found = diagnose_tokenization(config).facts
    engines = {row["engine"]: row for row in found["engines"]}
    assert not engines["gigatoken"]["exact"]
    assert "'日本'" in engines["gigatoken"]["mismatch"]
    assert engines["fastokens"]["exact"]
    assert found["fastest"] == "fastokens"


def test_an_engine_that_cannot_load_it_says_why(config: TokenizationConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Tokenizer, engine: str) -> Engine:
        raise Unsupported(f"{engine} is not installed")

    monkeypatch.setattr(type(load_tokenizer("headrace-32k")), "fast", none)
    report = diagnose_tokenization(config)
    assert [row.get("unsupported") for row in report.facts["engines"]] == [
        None,
        "gigatoken is not installed",
        "fastokens is not installed",
    ]
    assert report.facts["fastest"] == "tokenizers"
    assert "faster engine" not in " ".join(fix.title for fix in report.fixes)


def test_a_report_comes_back_from_its_file(config: TokenizationConfig, tmp_path: Path) -> None:
    report = diagnose_tokenization(dataclasses.replace(config, tokenizer="bytes"))
    report.save(tmp_path / "report.json")
    again: Report = load_report(tmp_path / "report.json")
    assert again.kind == "tokenization"
    assert again.facts == msgspec.json.decode(msgspec.json.encode(report.facts))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seconds": 0}, "--seconds 0"),
        ({"epochs": -1}, "--epochs -1"),
        ({"workers": 0}, "--workers 0"),
        ({"tokens_per_second": float("nan")}, "--tokens-per-second nan"),
        ({"tokens_per_second": 5.0, "run": Path("runs/x")}, "Leave one of them out"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        TokenizationConfig(**settings)


def test_unknown_source_and_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound):
        diagnose_tokenization(TokenizationConfig(source=str(tmp_path / "nothing.jsonl")))
    with pytest.raises(TokenizerError):
        diagnose_tokenization(TokenizationConfig(tokenizer=str(tmp_path / "nothing.json")))


# The rate of a run


def write_events(folder: Path, events: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    return folder


def test_rate_of_a_run_leaves_out_what_is_no_training(tmp_path: Path) -> None:
    spans = dict.fromkeys(step_event(10)["spans"], 0.0)
    slow = step_event(10, seconds=100.0, tokens_per_second=1.0, spans=spans)  # the warm-up
    spans = {**spans, "evaluation": 1.0, "checkpoint": 1.0, "data_wait": 4.0}
    later = step_event(20, seconds=10.0, tokens_per_second=1_000.0, spans=spans)
    run = write_events(tmp_path / "run", [slow, later])
    assert rate_of_run(run) == pytest.approx(8 * 1_000 / 4)  # 8 s of training, 4 of them waiting for data


def test_rate_of_a_whole_run(tmp_path: Path) -> None:
    run = write_events(tmp_path / "run", list(a_run(100)))
    assert rate_of_run(run) > step_event(10)["tokens_per_second"]  # it waited 1% of the time


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no finished steps"):
        rate_of_run(tmp_path)
