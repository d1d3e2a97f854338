"""The commands of the original guides: each prints the `headrace` command that it stands for, and runs it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from headrace.cli.main import main, underscores_too
from headrace.cli.messages import say_error
from headrace.errors import UsageError
from headrace.sources.catalogue import STDLIB, find

# Their names for things that have another one here; the other options are spelled the same.
RENAMED = {"--config": "--size", "--output": "--out", "--num-proc": "--workers", "--tokens-per-chunk": "--seq-len"}
DATA = {"--dataset", "--data", "--text"}
SAY = (
    "Name a training script, python scripts/diagnose_cpu_bottleneck.py train.py ARGS, or the folder of a run of "
    "headrace train, such as runs/NAME."
)
WITH_VALUE = {"--html", "--out", "-o", "--warmup"}  # of `headrace diagnose`


def run_original(verb: str, *, dataset: str | None = None) -> None:
    """Run `headrace VERB` with the options of this script; `dataset` is what it reads if nothing is named."""
    words = list(translated(sys.argv[1:]))
    if dataset is not None and not DATA.intersection(words):
        words = [*_named(dataset, words), *words]
    _run(verb, *words)


def run_bottleneck() -> None:
    """Run `headrace diagnose run` for a script, `headrace diagnose training` for a run folder or the newest one."""
    options, rest = split_options(sys.argv[1:])
    try:
        words = bottleneck(options, rest)
    except UsageError as error:
        say_error(str(error))
        sys.exit(error.exit_code)
    _run("diagnose", *words)


def _run(*words: str) -> None:
    sys.argv = ["headrace", *words]
    print(f"This is: {shlex.join(sys.argv)}", file=sys.stderr, flush=True)
    main()


def split_options(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before the first name is ours; what follows it belongs to the script, and stays as it is."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in WITH_VALUE else 1
    return list(translated(words[:at])), words[at:]


def bottleneck(options: list[str], rest: list[str]) -> list[str]:
    if not rest:
        return ["training", str(newest_run(Path("runs"))), *options]
    if Path(rest[0]).is_dir():
        return ["training", rest[0], *options, *rest[1:]]
    if Path(rest[0]).is_file():
        return ["run", *options, "--", sys.executable, *rest]
    raise UsageError(f"{rest[0]}: there is no such script and no such run. {SAY}")


def newest_run(folder: Path) -> Path:
    """The one that wrote an event last."""
    logs = sorted(folder.glob("*/events.jsonl"), key=lambda path: path.stat().st_mtime)
    if not logs:
        raise UsageError(f"No script is named, and there is no run in {folder}/. {SAY}")
    return logs[-1].parent


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
