"""Runs a training script and takes the time of its optimizer steps, with or without the probe of `diagnose run`.

    DIAGNOSIS_STEPS=steps.json python bench/diagnosis_clock.py SCRIPT ARGS    every step, written at the end
    DIAGNOSIS_TURNS=SOCKET     python bench/diagnosis_clock.py SCRIPT ARGS    as many steps as the other end asks for

The script is not changed: a hook behind every optimizer's step reads two clocks, 1 microsecond in all. CPU time is
that of the whole process, threads of the probe included; processes that it starts are not in it.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
from multiprocessing.connection import Client
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

WARM = 10  # steps before the first turn


class Steps:
    """All of them, for a script that ends by itself."""

    def __init__(self, path: Path) -> None:
        self.ends: list[tuple[float, float]] = []
        atexit.register(lambda: path.write_text(json.dumps(self.ends)))

    def __call__(self, *_: Any) -> None:
        self.ends.append((perf_counter(), process_time()))


class Turns:
    """The script stands still until it is told how many steps to make; 0 ends it."""

    def __init__(self, address: str) -> None:
        self.channel = Client(address)
        self.began = perf_counter(), 0.0  # the CPU time of the first message has the start-up in it
        self.asked = self.left = WARM

    def __call__(self, *_: Any) -> None:
        self.left -= 1
        if self.left:
            return
        wall, cpu = perf_counter() - self.began[0], process_time() - self.began[1]
        self.channel.send({"steps": self.asked, "wall": wall, "cpu": cpu})
        self.asked = self.left = self.channel.recv()
        if not self.asked:
            os._exit(0)  # past whatever a framework does when it is stopped
        self.began = perf_counter(), process_time()


def main() -> None:
    address, path = os.environ.pop("DIAGNOSIS_TURNS", None), os.environ.pop("DIAGNOSIS_STEPS", None)
    register_optimizer_step_post_hook(Turns(address) if address else Steps(Path(path or "steps.json")))
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
