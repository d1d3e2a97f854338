"""The plan depends on the input and the settings, never on workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import UsageError
from headrace.pipeline import PrepareConfig, make_plan, open_config_source
from headrace.pipeline.plan import group
from headrace.sources import Span
from headrace.tokenizers import load_tokenizer


def plan_for(corpus: Path, **settings: object) -> object:
    config = PrepareConfig(source=corpus, out="unused", tokenizer="bytes", **settings)  # type: ignore[arg-type]
    return make_plan(config, open_config_source(config), load_tokenizer("bytes"))


def test_the_same_plan_for_any_number_of_workers(corpus: Path) -> None:
    assert plan_for(corpus, workers=1, task_bytes=10_000) == plan_for(corpus, workers=64, task_bytes=10_000)


def test_small_spans_share_tasks_and_large_ones_do_not() -> None:
    spans = [Span(f"f{i}", "text", size) for i, size in enumerate((3, 3, 3, 20, 1))]
    tasks = group(spans, 7, together=False)
    assert [[span.path for span in task.spans] for task in tasks] == [["f0", "f1"], ["f2"], ["f3"], ["f4"]]
    assert [task.index for task in tasks] == [0, 1, 2, 3]
    assert len(group(spans, 7, together=True)) == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"chunk_size": 0}, "--chunk-size 0: it must be at least 1"),
        ({"workers": 0}, "--workers 0"),
        ({"max_chunks": 0}, "--max-chunks 0"),
        ({"val_fraction": 1.0}, "less than 1"),
        ({"val_fraction": -0.1}, "at least 0"),
        ({"max_reject_rate": 2.0}, "at most 1"),
        ({"packing": "tight"}, "one of concat, best-fit"),
        ({"engine": "warp"}, "--engine 'warp'"),
    ],
)
def test_settings_that_cannot_be(setting: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PrepareConfig(source="x", out="y", **setting)  # type: ignore[arg-type]


def test_a_vocabulary_too_large_for_the_dtype(corpus: Path, real_tokenizers: dict[str, Path]) -> None:
    config = PrepareConfig(source=corpus, out="unused", dtype="uint16")
    with pytest.raises(UsageError, match=r"holds ids below 65,536, but the vocabulary of .* has 100,277"):
        make_plan(config, open_config_source(config), load_tokenizer(real_tokenizers["cl100k_base"]))


def test_a_tokenizer_without_eos(corpus: Path, real_tokenizers: dict[str, Path]) -> None:
    tokenizer = load_tokenizer("bytes")
    tokenizer.special = type(tokenizer.special)()
    config = PrepareConfig(source=corpus, out="unused")
    with pytest.raises(UsageError, match=r"has no EOS token.*--no-eos"):
        make_plan(config, open_config_source(config), tokenizer)
