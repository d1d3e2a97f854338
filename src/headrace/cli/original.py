"""The commands of the original guides: each prints the `headrace` command that it stands for, and runs it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

from headrace.cli.main import main, underscores_too
from headrace.sources.catalogue import STDLIB, find

# Their names for things that have another one here; the other options are spelled the same.
RENAMED = {"--config": "--size", "--output": "--out", "--num-proc": "--workers", "--tokens-per-chunk": "--seq-len"}
DATA = {"--dataset", "--data", "--text"}


def run_original(verb: str, *, dataset: str | None = None) -> None:
    """Run `headrace VERB` with the options of this script; `dataset` is what it reads if nothing is named."""
    words = list(translated(sys.argv[1:]))
    if dataset is not None and not DATA.intersection(words):
        words = [*_named(dataset, words), *words]
    sys.argv = ["headrace", verb, *words]
    print(f"This is: {shlex.join(sys.argv)}", file=sys.stderr, flush=True)
    main()


def translated(words: list[str]) -> Iterator[str]:
    """--num_proc 8 and --num_proc=8 to --workers 8; a dataset by its name here."""
    option = ""
    for word in words:
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            option = RENAMED.get(underscores_too(name), underscores_too(name))
            yield option
            if sign:
                yield _value(option, value)
        else:
            yield _value(option, word)
            option = ""


def _value(option: str, value: str) -> str:
    """cerebras/SlimPajama-627B is slimpajama."""
    entry = find(value) if option == "--dataset" else None
    return value if entry is None else entry.name


def _named(dataset: str, words: list[str]) -> list[str]:
    if "--test" not in words:
        return ["--dataset", dataset]
    print(f"--test: the Python library's own source, which needs no network, in the place of {dataset}.",
          file=sys.stderr)  # fmt: skip
    return ["--text", STDLIB]
