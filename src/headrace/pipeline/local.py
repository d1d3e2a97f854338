"""Where tasks run on this machine: in worker processes, or for a small job in this very process.

Both give a generator of messages; closing it stops the work.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import msgspec

from headrace.errors import WorkerDied
from headrace.pipeline.launch import Waiting, WorkerProcess
from headrace.pipeline.plan import Task
from headrace.pipeline.process import attempt
from headrace.pipeline.results import Advanced, Job, Message, Order, RunTask
from headrace.pipeline.worker import TaskRunner
from headrace.tokenizers import Tokenizer

ATTEMPTS = 3  # a task whose worker dies is done again twice
STOP_SECONDS = 3.0

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


def run_inline(job: Job, tasks: Sequence[Task], engine: str, tokenizer: Tokenizer) -> Generator[Message, None, None]:
    """Starting a worker takes 0.3-0.5 s, which a job of a few MB would feel; so would loading the tokenizer again."""
    runner = TaskRunner(job, tokenizer)
    for task in tasks:
        held: list[Message] = []
        last = attempt(runner, RunTask(task, engine), held.append)
        yield from held
        yield last


class Worker:
    """A process, the task it has, and what it has written so far of its next message."""

    def __init__(self, started: WorkerProcess) -> None:
        self.task: Task | None = None
        self._held = b""
        self._started, self.process = started, started.process
        assert self.process.stdout is not None
        self.out = self.process.stdout.fileno()

    def order(self, order: Order) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died: seen when its output ends
            self.process.stdin.write(_encode(order) + b"\n")
            self.process.stdin.flush()

    def messages(self) -> list[Message] | None:
        """What it has to say now; None when it is dead."""
        data = os.read(self.out, 1 << 16)
        if not data:
            return None
        *lines, self._held = (self._held + data).split(b"\n")
        return [_decode(line) for line in lines]

    def end(self) -> str:
        """How it died, in words."""
        status = self.process.wait()
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with exit code {status}"

    def said(self) -> bytes:
        return self._started.said()

    def last_words(self) -> str:
        lines = self.said().decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-5:])

    def close(self) -> None:
        self._started.close()


class Pool:
    """Worker processes for one run. They start, and load the job's engine, while the caller is still at the gate."""

    def __init__(self, job: Job, size: int, waiting: Waiting) -> None:
        self._job, self._waiting = job, waiting
        self._selector = selectors.DefaultSelector()
        self._attempts: dict[int, int] = {}
        self._queue: deque[Task] = deque()
        self._deaths = 0
        self._workers: list[Worker] = []
        for _ in range(size):
            self._start()

    def run(self, tasks: Sequence[Task], engine: str) -> Generator[Message, None, None]:
        """Do the tasks with this engine; the workers are stopped when this ends or is closed."""
        try:
            self._queue.extend(tasks)
            while self._queue or any(worker.task for worker in self._workers):
                self._hand_out(engine)
                for key, _ in self._selector.select(timeout=1.0):
                    yield from self._listen(key.data)
        finally:
            self.stop()

    def stop(self) -> None:
        """Ask, wait a little, then end what is left."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(STOP_SECONDS)
            worker.process.kill()
            worker.process.wait()
            worker.close()
        self._workers.clear()
        self._selector.close()

    def _start(self) -> None:
        worker = Worker(self._waiting.take())
        worker.order(self._job)
        self._workers.append(worker)
        self._selector.register(worker.out, selectors.EVENT_READ, worker)

    def _hand_out(self, engine: str) -> None:
        for worker in self._workers:
            if worker.task is None and self._queue:
                worker.task = self._queue.popleft()
                tried = self._attempts.get(worker.task.index, 0)
                worker.order(RunTask(worker.task, "reference" if tried == ATTEMPTS - 1 else engine))

    def _listen(self, worker: Worker) -> Iterator[Message]:
        messages = worker.messages()
        if messages is None:
            self._bury(worker)
            return
        for message in messages:
            if not isinstance(message, Advanced):
                worker.task = None
            yield message

    def _bury(self, worker: Worker) -> None:
        """A worker died: put its task back at the head of the queue and start another, unless that was the last try."""
        how, words, task = worker.end(), worker.last_words(), worker.task
        self._keep_log(worker)
        self._selector.unregister(worker.out)
        self._workers.remove(worker)
        worker.close()
        if task is not None:
            self._attempts[task.index] = self._attempts.get(task.index, 0) + 1
        if task is None or self._attempts[task.index] >= ATTEMPTS:
            what = f"{task.label}: its worker {how}, {ATTEMPTS} times over" if task else f"A worker {how} at its start"
            raise WorkerDied(
                f"{what}. All other finished tasks are kept. Look at that input and at the memory of this machine, "
                f"then run the same command again to go on.{f' It said last:{chr(10)}{words}' if words else ''}"
            )
        self._queue.appendleft(task)
        self._start()

    def _keep_log(self, worker: Worker) -> None:
        self._deaths += 1
        with contextlib.suppress(OSError):  # a full disk is no reason to hide how the worker died
            (Path(self._job.parts) / f"worker-{self._deaths}.log").write_bytes(worker.said())
