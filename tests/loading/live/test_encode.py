"""Each group prints its line, and an engine that is wrong is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from conftest_live import batches, documents, no_threads_left
from headrace.loading.live import LiveText, walk
from headrace.tokenizers import Engine
from headrace.tokenizers.base import Ids
from headrace.tokenizers.hf import HFTokenizer

GROUP_LINE = re.compile(r"Batch tokenized (\d+) samples in (\d+\.\d)ms \((\d+\.\d)ms per sample\)")


def test_each_group_prints_its_line(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    batches(LiveText(corpus, group=8, threads=1, verbose=True), 40)
    no_threads_left()
    lines = capsys.readouterr().err.splitlines()
    found = [match for line in lines if (match := GROUP_LINE.fullmatch(line))]
    assert [line for line in lines if not GROUP_LINE.fullmatch(line)] == [lines[0]]
    assert lines[0].startswith("Tokenizing with gigatoken: exact on ")
    assert len(found) > 5
    assert max(int(match[1]) for match in found) == 8
    for match in found:
        samples, total, each = int(match[1]), float(match[2]), float(match[3])
        assert abs(each - total / samples) <= 0.05 + 0.05 / samples + 1e-9


def test_short_documents_are_grouped_by_bytes(corpus: Path) -> None:
    lines: list[str] = []
    batches(LiveText(corpus, verbose=True, report=lines.append), 3)
    found = [match for line in lines if (match := GROUP_LINE.fullmatch(line))]
    assert min(int(match[1]) for match in found) == 48


class Spoiled:
    """A real engine, but for one text."""

    name = "gigatoken"

    def __init__(self, engine: Engine, text: bytes, spoil: Callable[[Ids], Ids]) -> None:
        self._engine, self._text, self._spoil = engine, text, spoil

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        rows = self._engine.encode(texts)
        return [self._spoil(row) if text == self._text else row for text, row in zip(texts, rows, strict=True)]


def panic(row: Ids) -> Ids:
    raise BaseException("the engine fell over")


def off_by_one(row: Ids) -> Ids:
    return row + 1


def spoil_engines(monkeypatch: pytest.MonkeyPatch, text: bytes, spoil: Callable[[Ids], Ids]) -> None:
    load = HFTokenizer.fast
    monkeypatch.setattr(HFTokenizer, "fast", lambda self, engine: Spoiled(load(self, engine), text, spoil))


def test_a_wrong_engine_is_left_out(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = batches(LiveText(corpus), 30)
    spoil_engines(monkeypatch, "٣٤٥".encode(), off_by_one)  # one of the nasty strings
    told: list[str] = []
    live = LiveText(corpus, report=told.append)
    assert batches(live, 30) == good
    assert live.engines.name == "reference"
    assert "gigatoken is left out: it differs on" in told[0]
    assert told[-1] == "No fast engine gives the ids of tokenizers, so that tokenizes, more slowly."


@pytest.mark.parametrize("spoil", [panic, off_by_one])
def test_an_engine_that_fails_later_is_replaced(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Ids], Ids]
) -> None:
    """On a document that the sample before the run does not have; the next check finds it."""
    monkeypatch.setattr("headrace.loading.live.encode.CHECK_EVERY", 1)
    monkeypatch.setattr(walk, "SAMPLE_PLACES", 1)
    good = batches(LiveText(corpus), 60, shuffle=False)
    last = documents(3, 10)[-1]
    spoil_engines(monkeypatch, last.encode(), spoil)
    told: list[str] = []
    live = LiveText(corpus, threads=2, group=1, report=told.append)
    assert batches(live, 60, shuffle=False) == good
    assert live.engines.name == "reference"
    assert len(told) == 1
    assert told[0].startswith("gigatoken is left out from here on: ")
