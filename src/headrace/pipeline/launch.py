"""Worker processes, and starting them before this process imports anything heavy.

numpy and the rest take 0.2-0.4 s to import, the parent needs as long again to plan, and workers that are started first
do their part meanwhile. So this file imports nothing but the standard library and the config.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from headrace.pipeline.config import LEAST_TASK, PrepareConfig

WORKER = "from headrace.pipeline.process import main; main()"  # not -m, which would load that module twice


class WorkerProcess:
    """A process that reads orders on stdin; what it writes to stderr is kept until it ends."""

    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close(); the dataset's folder may not exist yet
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=_environment(),
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops the workers in order
        )

    def said(self) -> bytes:
        self.log.seek(0)
        return self.log.read()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.log):
            with contextlib.suppress(OSError, AttributeError):
                pipe.close()  # type: ignore[union-attr]


class Waiting:
    """Processes that have no orders yet; more are started when they are used up."""

    def __init__(self) -> None:
        self._processes: list[WorkerProcess] = []

    def start(self, count: int) -> None:
        for _ in range(count):
            self._processes.append(WorkerProcess())

    def take(self) -> WorkerProcess:
        return self._processes.pop(0) if self._processes else WorkerProcess()

    def stop(self) -> None:
        """End those that nobody took; they have done nothing yet."""
        for waiting in self._processes:
            waiting.process.kill()
        for waiting in self._processes:
            waiting.process.wait()
            waiting.close()
        self._processes.clear()


def workers_ahead(config: PrepareConfig) -> int:
    """How many workers a run will surely want, by a glance at the files named; 0 where only the plan can tell."""
    if config.on != "local" or config.finish or ((config.folder / "metadata.json").exists() and not config.force):
        return 0
    sources = [config.source] if isinstance(config.source, (str, Path)) else config.source
    size = sum(map(_file_size, sources))
    size //= config.task_count or 1
    tasks = size // (config.task_bytes or LEAST_TASK)
    return min(config.worker_count, tasks) if size > LEAST_TASK else 0


def _file_size(source: str | Path) -> int:
    """0 for what is no plain file: a folder, a pattern or a name is looked into later."""
    try:
        return os.path.getsize(source) if os.path.isfile(source) else 0
    except (OSError, ValueError):
        return 0


def _environment() -> dict[str, str]:
    """Workers import the same headrace as this process, wherever it was found."""
    home = str(Path(__file__).parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
