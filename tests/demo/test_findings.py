"""Every number is one that the run's files have."""

from __future__ import annotations

import json
import math

import pytest

from conftest_demo import Told
from headrace.demo.findings import Curve, gather, slow_curve, training_rate
from headrace.storage import TokenStore
from headrace.telemetry import read_events


def test_rate_of_the_slow_way_is_that_of_its_own_steps(told: Told) -> None:
    steps = json.loads(told.folder.slow_steps.read_text())
    report = json.loads(told.folder.slow_report.read_text())
    counted = steps[report["left_out"] :]
    assert report["left_out"] >= 3
    rate = sum(step["tokens"] for step in counted) / sum(step["seconds"] for step in counted)
    assert told.findings.slow.tokens_per_second == pytest.approx(rate)
    assert told.findings.slow.tokens == sum(step["tokens"] for step in steps)
    # The diagnosis measures the same loop from outside: its step is no shorter than what the script timed.
    timed = 1000 * sum(step["seconds"] for step in counted) / len(counted)
    assert report["step_ms"] == pytest.approx(timed, rel=0.2)


def test_rate_of_the_fast_way_is_that_of_its_events(told: Told) -> None:
    for way in told.findings.fast:
        events = [e for e in read_events(told.folder.run(way.name) / "events.jsonl") if e["kind"] == "step"]
        later = events[1:]
        seconds = sum(e["seconds"] - e["spans"]["evaluation"] - e["spans"]["checkpoint"] for e in later)
        tokens = sum(e["steps"] for e in later) * 1024
        assert way.tokens_per_second == pytest.approx(tokens / seconds)
        assert way.curve.loss == [e["loss"] for e in events]
        assert way.tokens == events[-1]["tokens"]
    assert told.findings.factor == pytest.approx(
        told.findings.fast[0].tokens_per_second / told.findings.slow.tokens_per_second
    )


def test_quality_is_that_of_the_last_evaluation(told: Told) -> None:
    store = TokenStore(told.folder.data)
    size = store.metadata.text_bytes / (store.metadata.total_tokens + store.metadata.val_tokens)
    for way in told.findings.fast:
        evals = [e for e in read_events(told.folder.run(way.name) / "events.jsonl") if e["kind"] == "eval"]
        assert way.val_loss == evals[-1]["val_loss"]
        assert way.bits_per_byte == pytest.approx(evals[-1]["val_loss"] / math.log(2) / size)
        assert way.curve.loss[-1] < way.curve.loss[0]


def test_the_files_alone_give_the_same_findings(told: Told) -> None:
    assert gather(told.folder) == told.findings


def test_padding_is_what_was_computed_and_not_learned_from(told: Told) -> None:
    steps = json.loads(told.folder.slow_steps.read_text())
    assert all(0 < step["tokens"] <= step["computed"] for step in steps)
    share = 1 - sum(step["tokens"] for step in steps) / sum(step["computed"] for step in steps)
    assert told.findings.padding == pytest.approx(share)


def test_lines_that_cost_are_lines_of_the_script(told: Told) -> None:
    source = told.folder.script.read_text().splitlines()
    found = told.findings.costly_lines
    assert [site.ms for site in found] == sorted((site.ms for site in found), reverse=True)
    for site in found:
        assert source[site.line - 1].strip() == site.code
    words = " ".join(site.code for site in found)
    assert "tokenizer.encode" in words
    assert ".item()" in words


def test_curve_of_the_slow_way_is_averaged() -> None:
    steps = [{"loss": float(n), "tokens": 10, "seconds": 0.5} for n in range(12)]
    assert slow_curve(steps) == Curve(tokens=[50, 100], seconds=[2.5, 5.0], loss=[2.0, 7.0])


def test_rate_leaves_evaluation_and_the_first_interval_out() -> None:
    def event(tokens: int, seconds: float, evaluation: float) -> dict[str, object]:
        return {"tokens": tokens, "seconds": seconds, "spans": {"evaluation": evaluation, "checkpoint": 0.0}}

    events = [event(1000, 9.0, 0.0), event(2000, 3.0, 1.0), event(3000, 2.0, 0.0)]
    assert training_rate(events) == 500
    assert training_rate(events[:1]) == pytest.approx(1000 / 9)
