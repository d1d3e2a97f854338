"""headrace prepare --task-index: one share of the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.output import amount, count, out_console, print_facts, print_json, print_next
from headrace.cli.stopping import stopping
from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.pipeline import PrepareConfig
    from headrace.pipeline.shares import ShareDone


def resolve_share(settings: dict[str, Any]) -> None:
    """Fill in what the array job says of itself, where only one of the two options was given."""
    from headrace.pipeline.shares import COUNT_NAME, INDEX_NAMES, from_environment

    index, total = from_environment(settings["task_index"], settings["task_count"])
    if index is None:
        names = " nor ".join(INDEX_NAMES)
        raise UsageError(f"--task-count {total} needs --task-index I: neither {names} is set here to say which share.")
    if total is None:
        raise UsageError(f"--task-index {index} needs --task-count N: {COUNT_NAME} is not set here to say how many.")
    settings["task_index"], settings["task_count"] = index, total


def do_share(config: PrepareConfig, *, as_json: bool) -> None:
    from headrace.cli.live import show_progress
    from headrace.pipeline import run_share

    kept = f"What is finished is kept in {config.out}."
    title = f"Preparing share {config.task_index} of {config.task_count} of {config.out}"
    with stopping(kept), show_progress(title) as live:
        done = run_share(config, live)
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(done))
    else:
        show_share(done)


def show_share(done: ShareDone) -> None:
    from rich.text import Text

    console = out_console()
    line = Text.assemble(("Done ", "done"), f"share {done.task_index} of {done.task_count} of {done.path}")
    console.print(line, soft_wrap=True)
    made = f"{count(done.tasks, 'task')}, {amount(done.tokens)} tokens in {count(done.documents, 'document')}"
    left = f"{count(done.tasks_left, 'task')} of other shares" if done.tasks_left else "nothing: all tasks are done"
    print_facts(console, [("made", made), ("left", left)])
    print_next(console, "Write the manifest" + (" when all are done" if done.tasks_left else ""), done.finish)
