"""The command that goes on with a run, for whoever finds it stopped."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import MISSING, fields

from headrace.pipeline.config import PrepareConfig

NAMED = ("source", "out")
LEFT_OUT = ("force",)  # it would begin anew


def command_of(config: PrepareConfig) -> str:
    """As one would type it, with the options that are not at their defaults."""
    return shlex.join(["headrace", "prepare", *_sources(config), "--out", os.fspath(config.out), *_options(config)])


def _sources(config: PrepareConfig) -> list[str]:
    given = [config.source] if isinstance(config.source, (str, os.PathLike)) else config.source
    return [os.fspath(source) for source in given]


def _options(config: PrepareConfig) -> Iterator[str]:
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in (*NAMED, *LEFT_OUT) or field.default is MISSING or value == field.default:
            continue
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        else:
            yield from (f"--{flag}", str(value))
