"""Where tasks run on a Ray cluster: one Ray task for each task of the plan. Gives messages, as local.py does.

Nodes get orders and give small messages back; text and tokens go over the storage that all of them share. ray is
imported only by whoever asks for a cluster: that takes 1-2 s.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import HeadraceError, MissingDependency, WorkerDied
from headrace.files import disk_full_named, sync
from headrace.pipeline.config import PrepareConfig
from headrace.pipeline.plan import Task
from headrace.pipeline.process import attempt
from headrace.pipeline.results import Advanced, Failed, Finished, Job, Message, RunTask, TaskResult
from headrace.pipeline.worker import TaskRunner
from headrace.tokenizers.fast import one_thread_each
from headrace.version import __version__

RETRIES = 3  # by Ray, with each engine: a lost node is no fault of the task, so more than a local run allows
REPORT_EVERY = 1.0  # seconds; 4,096 workers send as many messages a second
LOOK_EVERY = 0.5
AHEAD = 100  # tasks submitted beyond two for each place, so that an autoscaler sees that there is work
CONNECT_SECONDS = 10.0

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


class RayPool:
    """The cluster, for one run of tasks with one engine."""

    def __init__(self, job: Job, config: PrepareConfig) -> None:
        self._ray, self._connected_here = _connect(config.ray_address)
        self._job = job
        self._running: dict[Any, RunTask] = {}
        self._queue: deque[RunTask] = deque()
        resources: dict[str, Any] = {"num_cpus": config.cpus_per_task}
        if config.memory_per_task is not None:
            resources["memory"] = int(config.memory_per_task)
        self._run_task = self._ray.remote(max_retries=RETRIES, **resources)(run_task)
        self._job_data = self._ray.put(_encode(job))
        self._mailbox = _start_mailbox(self._ray)
        self._cpus_per_task = config.cpus_per_task
        self._looked = time.monotonic()

    def run(self, tasks: Sequence[Task], engine: str) -> Generator[Message, None, None]:
        """Do the tasks with this engine; what still runs is cancelled when this ends or is closed."""
        try:
            self._queue.extend(RunTask(task, engine) for task in tasks)
            while self._queue or self._running:
                self._hand_out()
                ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=LOOK_EVERY)
                for ref in ready:
                    yield from self._collect(ref)
                yield from self._progress()
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel what still runs. A driver that leaves takes its tasks with it: Ray ends their processes.

        ray.cancel(force=True) would do the same one by one, but a task that ends just then aborts the driver (a failed
        check in task_manager.cc of Ray 2.60.0), so it is not used.
        """
        if self._connected_here:
            self._ray.shutdown()
        else:
            for ref in self._running:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.cancel(ref)
            self._ray.kill(self._mailbox)
        self._running.clear()

    def _hand_out(self) -> None:
        if not self._queue:
            return
        places = int(self._ray.cluster_resources().get("CPU", 0) // self._cpus_per_task)
        while self._queue and len(self._running) < 2 * places + AHEAD:
            order = self._queue.popleft()
            ref = self._run_task.remote(self._job_data, _encode(order), __version__, self._mailbox)
            self._running[ref] = order

    def _collect(self, ref: Any) -> Iterator[Message]:
        order = self._running.pop(ref)
        errors = self._ray.exceptions
        try:
            yield _decode(self._ray.get(ref))
        except errors.RayTaskError as error:  # before anything of Headrace ran: it is not installed there
            raise HeadraceError(
                f"{order.task.label} could not be begun on the cluster: {str(error).strip().splitlines()[-1]}\n"
                f"Install headrace {__version__} on every node, then run the same command again to go on."
            ) from error
        except errors.RayError as error:
            self._again(order, error)

    def _again(self, order: RunTask, error: Exception) -> None:
        """Ray has given up on it: try the reference engine, unless that was it."""
        if order.engine == "reference":
            raise WorkerDied(
                f"{order.task.label}: its worker died on the cluster {RETRIES + 1} times. All other finished tasks "
                f"are kept. Look at that input and at the memory of the nodes (--memory-per-task), then run the same "
                f"command again to go on. Ray said: {str(error).strip().splitlines()[0]}"
            ) from error
        self._queue.appendleft(RunTask(order.task, "reference"))

    def _progress(self) -> Iterator[Message]:
        """What running tasks have said of themselves; nothing is lost but the view when they cannot."""
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked = time.monotonic()
        running = {order.task.index for order in self._running.values()}
        with contextlib.suppress(self._ray.exceptions.RayError):
            for data in self._ray.get(self._mailbox.take.remote(), timeout=CONNECT_SECONDS):
                message = _decode(data)
                if isinstance(message, Advanced) and message.index in running:
                    yield message


class Mailbox:
    """Holds the newest word of each running task until the driver asks; lives on the driver's node."""

    def __init__(self) -> None:
        self._newest: dict[int, bytes] = {}

    def put(self, index: int, data: bytes) -> None:
        self._newest[index] = data

    def take(self) -> list[bytes]:
        newest, self._newest = self._newest, {}
        return list(newest.values())


def _start_mailbox(ray: Any) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=True)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(Mailbox).remote()


def _connect(address: str) -> tuple[Any, bool]:
    """ray, and whether it was this call that connected it. Ctrl-C and SIGTERM go on meaning what they meant."""
    try:
        import ray
    except ImportError:
        raise MissingDependency("ray", "ray", "Preparing on a Ray cluster") from None
    if ray.is_initialized():
        return ray, False
    _check_answers(address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, TimeoutError, ValueError) as error:
        raise _no_cluster(address, error) from error
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    return ray, True


def _check_answers(address: str) -> None:
    """Ray itself tries for two minutes where nobody listens."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> HeadraceError:
    return HeadraceError(
        f"--ray-address {address}: there is no Ray cluster that can be reached ({str(error).splitlines()[0]}). Run "
        f"'ray start --address=HOST:PORT' on this machine to join one, or leave '--on ray' out to run here alone."
    )


# On the nodes

_runners: dict[bytes, TaskRunner] = {}  # one at most: Ray keeps a process for the tasks to come, and its engine loaded


def run_task(job_data: bytes, order_data: bytes, version: str, mailbox: Any) -> bytes:
    """What Ray calls: does a task and gives the last message, whatever became of it."""
    one_thread_each()
    order = msgspec.json.decode(order_data, type=RunTask)

    def send(message: Message) -> None:
        mailbox.put.remote(order.task.index, _encode(message))

    return _encode(_attempt(job_data, order, version, send))


def _attempt(job_data: bytes, order: RunTask, version: str, send: Any) -> Message:
    index = order.task.index
    try:
        job = msgspec.json.decode(job_data, type=Job)
        if trouble := _unfit(job, version):
            return Failed(index, "UsageError", trouble, "")
        if job_data not in _runners:
            _runners.clear()
            _runners[job_data] = TaskRunner(job)
        message = attempt(_runners[job_data], order, send, REPORT_EVERY)
        if isinstance(message, Finished):
            _sync(Path(job.folder), message.result)
        return message
    except HeadraceError as error:
        return Failed(index, type(error).__name__, str(error), "")
    except Exception as error:
        return Failed(index, type(error).__name__, str(error), traceback.format_exc())


def _unfit(job: Job, version: str) -> str | None:
    if version != __version__:
        return (
            f"The node {socket.gethostname()} has headrace {__version__}, and this command {version}: the bytes might "
            f"differ. Install {version} on every node."
        )
    if not Path(job.parts).is_dir():
        return (
            f"--out {job.folder} is not there on the node {socket.gethostname()}. Name a folder on storage that all "
            f"nodes see under the same path."
        )
    return None


def _sync(folder: Path, result: TaskResult) -> None:
    """Here, because another machine cannot write out what this one still holds in memory."""
    for shard in result.shards:
        for suffix in ("bin", "idx"):
            path = folder / f"{shard.name}.{suffix}"
            with disk_full_named(path):
                sync(path)
