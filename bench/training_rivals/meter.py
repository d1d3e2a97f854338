"""CPU time, wall time and page faults between two steps, the same way for every contender.

torch calls a hook after each step of any optimizer, so nothing has to be put into a contender's loop: the time from the
hook after the last warm-up step to the hook after the last step is that of whole steps.
"""

from __future__ import annotations

import resource
import time
from typing import Any, NamedTuple

import psutil
from torch.optim.optimizer import register_optimizer_step_post_hook

from training_rivals.spec import Spec


class Reading(NamedTuple):
    wall: float
    cpu: float  # user and system, all threads and all children
    system: float  # the part of it in the kernel: page faults above all
    faults: int


class Meter:
    def __init__(self, spec: Spec) -> None:
        self.spec, self.count = spec, 0
        self.readings: list[Reading] = []
        self.peak_mb = 0.0
        register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, *_: Any) -> None:
        self.count += 1
        if self.count in (self.spec.warm, self.spec.all_steps):
            self.readings.append(read())
            self.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def result(self) -> dict[str, float]:
        if self.count != self.spec.all_steps:
            raise RuntimeError(f"{self.count} steps of {self.spec.all_steps} were made")
        first, last = self.readings
        steps, tokens = self.spec.steps, self.spec.steps * self.spec.tokens_per_step
        cpu = last.cpu - first.cpu
        return {
            "tokens_per_cpu_s": tokens / cpu,
            "tokens_per_s": tokens / (last.wall - first.wall),
            "system_share": (last.system - first.system) / cpu,
            "faults_per_step": (last.faults - first.faults) / steps,
            "peak_mb": self.peak_mb,
        }


def read() -> Reading:
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    alive = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    user = own.ru_utime + ended.ru_utime + sum(times.user for times in alive)
    system = own.ru_stime + ended.ru_stime + sum(times.system for times in alive)
    return Reading(time.perf_counter(), user + system, system, own.ru_minflt)
