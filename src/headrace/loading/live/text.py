"""LiveText: raw text by name, with the tokenizer that turns it into ids while a run goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import UsageError
from headrace.loading.live.content import content_hash
from headrace.loading.live.encode import Engines
from headrace.loading.live.walk import find_units, take_sample
from headrace.sources import Span, open_source
from headrace.tokenizers import DEFAULT, load_tokenizer

MOST_THREADS = 4  # one gave 13 million tokens a second on a busy core: few models take more
WINDOW_TOKENS = 1 << 21  # 8 MiB of text, from up to 32 places: 0.2 s before the first batch


class LiveText:
    """What `Loader` takes in the place of a prepared dataset. Nothing is read before the first batch is asked for.

    `threads` tokenize at once, a `group` of documents at a time; None: 8 documents, or 64 KiB of short ones. Neither
    changes the order. `window` is how many tokens are shuffled at a time. `report` takes what there is to say, from
    any thread; None: it goes to stderr.
    """

    def __init__(
        self,
        source: str | Path | Sequence[str | Path],
        *,
        tokenizer: str | Path = DEFAULT,
        text_field: str | None = None,
        split: str | None = None,
        revision: str | None = None,
        separator: str | None = None,
        keep_damaged: bool = False,
        threads: int | None = None,
        group: int | None = None,
        window: int = WINDOW_TOKENS,
        verbose: bool = False,
        report: Callable[[str], None] | None = None,
    ) -> None:
        _check(threads=threads, group=group, window=window)
        self.source = open_source(
            source,
            text_field=text_field,
            split=split,
            revision=revision,
            separator=separator,
            keep_damaged=keep_damaged,
        )
        self.tokenizer = load_tokenizer(tokenizer)
        self.eos = _eos(self.tokenizer.special.eos, self.tokenizer.name)
        self.threads, self.group, self.window = threads or _usual_threads(), group, window
        self.verbose, self.report = verbose, report or _to_stderr

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    @cached_property
    def units(self) -> list[list[Span]]:
        """The pieces that are read one after another, each on its own."""
        return find_units(self.source)

    @cached_property
    def engines(self) -> Engines:
        """The engine that the parity check chose, on the nasty strings and on documents of this text."""
        sample = take_sample(self.units, self.source.options)
        return Engines(self.tokenizer, self.eos, sample, report=self.report, verbose=self.verbose)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What the text and its tokens are known by; a state of another text is refused by it."""
        return {
            "tokenizer": self.tokenizer.sha256,
            "eos": self.eos,
            "reading": msgspec.to_builtins(self.source.options),
            "files": len(self.source.files),
            "bytes": self.source.total_bytes,
            "content": content_hash(self.source.files),
        }


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # one call, so that lines of two threads do not mix


def _usual_threads() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_THREADS, cores)


def _check(**numbers: int | None) -> None:
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: it must be at least 1. Leave it out for the usual.")


def _eos(found: int | None, tokenizer: str) -> int:
    if found is None:
        raise UsageError(
            f"The tokenizer {tokenizer} has no EOS token to put behind documents. Prepare the text instead, with "
            "'headrace prepare ... --eos-token TOKEN' or --no-eos, and load what it makes."
        )
    return found
