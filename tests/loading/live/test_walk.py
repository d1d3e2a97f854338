"""What is wrong with a text is told, counted or raised, and never makes a run end or turn in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest_live import WINDOW, batches, no_threads_left, open_feed, take, write_jsonl
from headrace.errors import DataRejected, UsageError
from headrace.loading.live import LiveText


def test_rejected_records_are_counted_and_told(corpus: Path) -> None:
    good = batches(LiveText(corpus, window=WINDOW), 60, shuffle=False)
    lines = (corpus / "a.jsonl").read_text().splitlines()
    lines[3:3] = ["{broken", '{"text": null}', '{"text": 5}', "{broken too", '{"body": "x"}']
    (corpus / "a.jsonl").write_text("\n".join(lines) + "\n")
    told: list[str] = []
    opened = open_feed(LiveText(corpus, window=WINDOW, report=told.append), shuffle=False)
    assert take(opened, 60) == good
    opened.stop()
    assert sum(opened.rejects.values()) == 5
    assert opened.rejects["field 'text' is null"] == 1
    assert {reject.where for reject in opened.first_rejects} == {f"line {number}" for number in range(4, 9)}
    assert len([line for line in told if line.startswith("Left out: ")]) == 3
    assert any(line.startswith("Left out in this epoch: 5 records") for line in told)


@pytest.mark.parametrize(
    ("content", "reason"), [("", "its files are empty"), ("{broken\n{broken\n", "all 2 records were refused")]
)
def test_text_without_documents_is_an_error(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    opened = open_feed(LiveText(tmp_path / "a.jsonl", report=lambda line: None))
    with pytest.raises(DataRejected, match=f"has no document to train on: {reason}"):
        opened.next()
    no_threads_left()


def test_too_little_text_is_an_error(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", ["a b", "c"])
    opened = open_feed(LiveText(tmp_path / "a.jsonl", tokenizer="bytes"))
    with pytest.raises(UsageError, match="holds 6 tokens: too few for a sequence of 16"):
        opened.next()
    no_threads_left()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_damaged_file_reaches_the_caller_after_what_came_before(corpus: Path, threads: int) -> None:
    good = batches(LiveText(corpus), 5, shuffle=False)
    whole = (corpus / "b.jsonl.gz").read_bytes()
    (corpus / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    opened = open_feed(LiveText(corpus, threads=threads, group=1), shuffle=False)
    assert take(opened, 5) == good
    for _ in range(2):
        with pytest.raises(DataRejected, match=r"b.jsonl.gz is damaged"):
            take(opened, 200)
    no_threads_left()


def test_settings_that_cannot_be(corpus: Path) -> None:
    with pytest.raises(UsageError, match="threads 0: it must be at least 1"):
        LiveText(corpus, threads=0)
    with pytest.raises(UsageError, match="There is no file or folder"):
        LiveText(corpus / "gone.jsonl")
