"""prepare, from its first moment: workers are started, then all that a run needs is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError
from headrace.pipeline.config import PrepareConfig
from headrace.pipeline.launch import Waiting, workers_ahead

if TYPE_CHECKING:
    from headrace.pipeline.progress import Observer
    from headrace.pipeline.shares import ShareDone
    from headrace.storage import TokenStore


def prepare(
    source: str | Path | Sequence[str | Path], *, out: str | Path, observer: Observer | None = None, **settings: Any
) -> TokenStore:
    """Tokenize once: text by path, glob, folder, URL or catalogue name into the dataset folder `out`.

    The settings are the fields of PrepareConfig. Stopped at any moment, the same call goes on where it was.
    """
    return run_prepare(PrepareConfig(source=source, out=out, **settings), observer)


def run_prepare(config: PrepareConfig, observer: Observer | None = None) -> TokenStore:
    if config.task_index is not None:
        raise UsageError(
            "A share is no dataset yet: call headrace.pipeline.run_share for it, then prepare(finish=True)."
        )
    waiting = Waiting()
    try:
        waiting.start(workers_ahead(config))
        from headrace.pipeline.progress import Silent
        from headrace.pipeline.run import run

        if config.finish:
            from headrace.pipeline.shares import finish_shares

            return finish_shares(config, observer or Silent(), waiting)
        return run(config, observer or Silent(), waiting)
    finally:
        waiting.stop()


def run_share(config: PrepareConfig, observer: Observer | None = None) -> ShareDone:
    """Do the share of the plan that --task-index and --task-count name, and leave the rest to others."""
    waiting = Waiting()
    try:
        waiting.start(workers_ahead(config))
        from headrace.pipeline import shares
        from headrace.pipeline.progress import Silent

        return shares.run_share(config, observer or Silent(), waiting)
    finally:
        waiting.stop()
