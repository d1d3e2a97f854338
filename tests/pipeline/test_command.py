"""The command in the log is the one that goes on: parsed again it gives the same settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.prepare import prepare
from headrace.pipeline import PrepareConfig
from headrace.pipeline.command import command_of


def parsed(command: str) -> PrepareConfig:
    """As the command line would read it."""
    program, verb, *words = shlex.split(command)
    assert (program, verb) == ("headrace", "prepare")
    found = prepare.make_context("prepare", words).params
    source = [*found.pop("sources"), *found.pop("dataset")]
    del found["as_json"], found["dry_run"]
    return PrepareConfig(source=source, **found)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tokenizer": "bytes", "chunk_size": 512, "workers": 3, "val_fraction": 0.05, "max_chunks": 7},
        {"eos": False, "bos": True, "keep_damaged": True, "sha256": True, "dtype": "int32", "packing": "best-fit"},
        {"text_field": "it's body", "split": "a b", "separator": "\n\n", "revision": "main", "eos_token": "</s>"},
        {"max_reject_rate": 1e-05, "engine": "reference", "verify": "full", "batch_size": 9, "task_bytes": 1 << 20},
    ],
)
def test_parsed_again_it_is_the_same(settings: dict[str, Any]) -> None:
    config = PrepareConfig(source=["a file.jsonl", "b*.txt"], out="data/my web", **settings)
    assert parsed(command_of(config)) == config


def test_as_one_would_type_it() -> None:
    config = PrepareConfig(source=Path("a.jsonl"), out=Path("data/a"), force=True, chunk_size=1024)
    assert command_of(config) == "headrace prepare a.jsonl --out data/a --chunk-size 1024"
