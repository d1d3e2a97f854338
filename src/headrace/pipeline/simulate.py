"""A run of many workers as events in time: start-up, uneven tasks, slow and lost nodes, shared storage, the end.

Storage is one resource that all tasks share. While they want more bytes per second than it gives, all go slower by the
same factor. So a task that needs 5 s of work ends when a clock that runs at that factor has gone on by 5 s: one clock
for all, and an event costs the logarithm of the number of workers and not their number (1 s for 400,000 tasks).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import msgspec

from headrace.errors import UsageError
from headrace.pipeline.local import ATTEMPTS

HOUR = 3600.0
READY, LOST = 0, 1  # what happens at a moment


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where a run takes place, and what goes wrong there."""

    workers: int
    workers_per_node: int = 64
    start_seconds: float = 0.0  # until a worker has its first task
    restart_seconds: float = 60.0  # until a lost node is there again
    failures_per_hour: float = 0.0  # of one node
    losses: tuple[tuple[float, int], ...] = ()  # nodes that are lost at given seconds, beside those by chance
    slow_nodes: float = 0.0  # their share
    slowdown: float = 2.0  # how much longer a task takes on one of them
    spread: float = 0.0  # of the logarithm of a task's time
    storage_bytes_per_s: float = math.inf  # for all workers together
    array: bool = False  # task i is for worker i modulo workers, as in an array of jobs; else for whoever is free
    sync_seconds: float = 0.0  # for each finished task: its files are made durable one task after another
    finish_seconds: float = 0.0  # behind the last of it
    reference_factor: float = 1.0  # how much longer the last attempt takes, with the reference engine
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("workers", "workers_per_node", "slowdown", "storage_bytes_per_s", "reference_factor"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{_flag(name)} {getattr(self, name):g}: it must be above 0.")
        for name in ("start_seconds", "restart_seconds", "failures_per_hour", "spread", "sync_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UsageError(f"{_flag(name)} {getattr(self, name):g}: it must be at least 0.")
        if not 0 <= self.slow_nodes <= 1:
            raise UsageError(f"--slow-nodes {self.slow_nodes:g}: it is a share, from 0 to 1; 0.01 is one in a hundred.")

    @property
    def nodes(self) -> int:
        return -(-self.workers // self.workers_per_node)


class Outcome(msgspec.Struct, kw_only=True):
    """Seconds by the clock, and where the seconds of all workers together went; these add up to workers x seconds."""

    seconds: float = 0.0
    working: float = 0.0  # at tasks that were finished
    storage_wait: float = 0.0  # of them, behind storage that gave less than was asked for
    lost: float = 0.0  # at tasks whose node was lost, and until it was there again
    starting: float = 0.0
    idle: float = 0.0  # with no task left
    finishing: float = 0.0  # syncing what was left to sync, and the manifest
    retries: int = 0
    failures: int = 0
    stops: int = 0  # tasks that were lost at every attempt: the run stops there, and the same command goes on
    tasks: int = 0
    last_task: float = 0.0  # when it was finished
    bytes_moved: float = 0.0  # finished or not


def simulate(seconds: Sequence[float], moved: Sequence[float], cluster: Cluster) -> Outcome:
    """Tasks that take so many seconds of a core and move so many bytes each, in this order."""
    if not seconds:
        raise UsageError("There is no task to simulate. Give more bytes.")
    return _Simulation(list(seconds), list(moved), cluster).run()


class _Simulation:
    def __init__(self, seconds: list[float], moved: list[float], cluster: Cluster) -> None:
        self._cluster, self._moved = cluster, moved
        self._random = random.Random(cluster.seed)
        self._seconds = self._spread(seconds)
        workers = cluster.workers
        self._slow = self._slow_workers()
        self._queues = _queues(len(seconds), workers if cluster.array else 1)
        self._attempts: dict[int, int] = {}
        self._task = [-1] * workers
        self._begun = [0.0] * workers  # by the wall clock
        self._length = [0.0] * workers  # of the task at hand, if storage keeps up
        self._turn = [0] * workers  # goes up when a task is lost, so that its end is known to be none
        self._work_begun = [0.0] * workers  # by the clock of the work
        self._idle: list[int] = []  # with nothing left to do
        self._ends: list[tuple[float, int, int]] = []  # by the clock of the work: end, worker, turn
        self._moments: list[tuple[float, int, int]] = []  # by the wall clock: time, kind, worker or node
        self._wanted = 0.0  # bytes/s by all that run
        self._running = 0
        self._clock = self._work_clock = 0.0
        self._left = len(seconds)
        self._finished: list[float] = []
        self.out = Outcome(tasks=len(seconds))

    def run(self) -> Outcome:
        cluster = self._cluster
        self._moments = [(cluster.start_seconds, READY, worker) for worker in range(cluster.workers)]
        self._moments += [(time, LOST, node) for time, node in cluster.losses]
        if cluster.failures_per_hour:
            self._moments += [(self._next_failure(0.0), LOST, node) for node in range(cluster.nodes)]
        heapify(self._moments)
        while self._left:
            self._step()
        return self._account()

    def _step(self) -> None:
        """Go to what happens next."""
        while self._ends and self._ends[0][2] != self._turn[self._ends[0][1]]:
            heappop(self._ends)
        speed = self._speed()
        end = self._clock + (self._ends[0][0] - self._work_clock) / speed if self._ends else math.inf
        if self._moments and self._moments[0][0] <= end:
            time, kind, who = heappop(self._moments)
            self._go_to(time, speed)
            if kind == READY:
                self._take(who)
            else:
                self._lose(who)
            return
        self._go_to(end, speed)
        self._work_clock, worker, _ = heappop(self._ends)
        self._finish(worker)

    def _go_to(self, time: float, speed: float) -> None:
        self._work_clock += (time - self._clock) * speed
        self._clock = time

    def _speed(self) -> float:
        limit = self._cluster.storage_bytes_per_s
        return 1.0 if self._wanted <= limit else limit / self._wanted

    def _take(self, worker: int) -> None:
        queue = self._queues[worker if self._cluster.array else 0]
        if not queue:
            self._idle.append(worker)
            return
        task = queue.popleft()
        length = self._seconds[task] * self._slow[worker]
        if self._attempts.get(task, 0) == ATTEMPTS - 1:
            length *= self._cluster.reference_factor
        self._task[worker], self._length[worker] = task, length
        self._begun[worker], self._work_begun[worker] = self._clock, self._work_clock
        self._wanted += self._moved[task] / length
        self._running += 1
        heappush(self._ends, (self._work_clock + length, worker, self._turn[worker]))

    def _leave(self, worker: int) -> int:
        task, self._task[worker] = self._task[worker], -1
        self._running -= 1
        # Back to exactly nothing when nobody runs, so that rounding does not add up.
        self._wanted = self._wanted - self._moved[task] / self._length[worker] if self._running else 0.0
        return task

    def _finish(self, worker: int) -> None:
        task = self._leave(worker)
        self.out.working += self._length[worker]
        self.out.storage_wait += max(0.0, self._clock - self._begun[worker] - self._length[worker])
        self.out.bytes_moved += self._moved[task]
        self._finished.append(self._clock)
        self._left -= 1
        self._take(worker)

    def _lose(self, node: int) -> None:
        """A node is gone with what its workers had; it comes back empty-handed."""
        cluster = self._cluster
        self.out.failures += 1
        back = self._clock + cluster.restart_seconds
        for worker in range(
            node * cluster.workers_per_node, min((node + 1) * cluster.workers_per_node, cluster.workers)
        ):
            self._lose_worker(worker, back)
        if cluster.failures_per_hour:
            heappush(self._moments, (self._next_failure(back), LOST, node))

    def _lose_worker(self, worker: int, back: float) -> None:
        if self._task[worker] < 0:
            return  # it has not begun, or has nothing left to do: it is there when it is needed
        task = self._leave(worker)
        self._turn[worker] += 1
        done = (self._work_clock - self._work_begun[worker]) / self._length[worker]
        self.out.lost += back - self._begun[worker]
        self.out.bytes_moved += self._moved[task] * done
        self.out.retries += 1
        tried = self._attempts[task] = self._attempts.get(task, 0) + 1
        if tried >= ATTEMPTS:
            self.out.stops += 1
            self._attempts[task] = 0
        self._queues[worker if self._cluster.array else 0].appendleft(task)
        heappush(self._moments, (back, READY, worker))
        self._wake_one()

    def _wake_one(self) -> None:
        """A task came back: somebody who has nothing left to do takes it at once."""
        if self._idle and not self._cluster.array:
            self._take(self._idle.pop())

    def _next_failure(self, after: float) -> float:
        return after + self._random.expovariate(self._cluster.failures_per_hour / HOUR)

    def _spread(self, seconds: list[float]) -> list[float]:
        """Uneven tasks of the same mean: lognormal, as times are that many small things make longer."""
        sigma = self._cluster.spread
        if not sigma:
            return seconds
        draw = self._random.lognormvariate
        return [one * draw(-sigma * sigma / 2, sigma) for one in seconds]

    def _slow_workers(self) -> list[float]:
        cluster = self._cluster
        slow = set(self._random.sample(range(cluster.nodes), round(cluster.slow_nodes * cluster.nodes)))
        return [
            cluster.slowdown if worker // cluster.workers_per_node in slow else 1.0 for worker in range(cluster.workers)
        ]

    def _account(self) -> Outcome:
        out, cluster = self.out, self._cluster
        out.last_task = self._clock
        # A node that was to come back behind the last task is not waited for.
        out.lost -= sum(time - self._clock for time, kind, _ in self._moments if kind == READY)
        synced = _synced(self._finished, cluster.sync_seconds, cluster.workers if cluster.array else 1)
        out.seconds = synced + cluster.finish_seconds
        out.starting = cluster.workers * min(cluster.start_seconds, self._clock)
        out.finishing = cluster.workers * (out.seconds - self._clock)
        spent = out.working + out.storage_wait + out.lost + out.starting + out.finishing
        out.idle = max(0.0, cluster.workers * out.seconds - spent)
        return out


def _queues(tasks: int, workers: int) -> list[deque[int]]:
    return [deque(range(first, tasks, workers)) for first in range(workers)]


def _synced(finished: list[float], each: float, at_once: int) -> float:
    """When all is durable: tasks come at these times, in order, and so many are synced at once."""
    if not each:
        return finished[-1]
    free = [0.0] * min(at_once, len(finished))
    for time in finished:
        heappush(free, max(heappop(free), time) + each)
    return max(free)


def _flag(name: str) -> str:
    named = {"storage_bytes_per_s": "storage-gbps", "sync_seconds": "sync-ms"}
    return f"--{named.get(name, name.replace('_', '-'))}"
