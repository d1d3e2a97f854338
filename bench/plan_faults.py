"""Runs of `headrace prepare` that are interfered with: a worker is killed, or stopped for half the time."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PERIOD = 0.1  # seconds of a straggler's going and standing together


def run_killing(args: argparse.Namespace, files: list[Path], workers: int, finished: int) -> float:
    """One worker is killed, with what it was doing, once so many tasks are finished: by the clock a run may be over."""
    results = args.work / "plan-out" / ".headrace"

    def kill(main: psutil.Process, passed: float) -> bool:
        found = workers_of(main)
        if not found or len(list(results.glob("task-*[0-9].json"))) < finished:
            return False
        found[0].kill()
        return True

    return watched(args, files, workers, kill, every=0.01, must_act=True)


def run_stopping(args: argparse.Namespace, files: list[Path], workers: int, share: float) -> float:
    """One worker stands still for so much of the time."""

    def hold(main: psutil.Process, passed: float) -> bool:
        found = workers_of(main)
        if found:
            found[0].suspend()
            time.sleep(PERIOD * share)
            found[0].resume()
        return False

    return watched(args, files, workers, hold, every=PERIOD * (1 - share))


def watched(
    args: argparse.Namespace,
    files: list[Path],
    workers: int,
    act: Callable[[psutil.Process, float], bool],
    *,
    every: float,
    must_act: bool = False,
) -> float:
    """Seconds of a run that `act` interferes with until it says that it is done."""
    out = args.work / "plan-out"
    shutil.rmtree(out, ignore_errors=True)
    os.sync()
    command = [sys.executable, "-m", "headrace", "prepare", *map(str, files), "--tokenizer", args.tokenizer]
    command += ["--out", str(out), "--workers", str(workers), "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = False
    while process.poll() is None:
        time.sleep(every)
        with contextlib.suppress(psutil.Error):  # a process that has ended meanwhile
            done = done or act(psutil.Process(process.pid), time.perf_counter() - started)
    seconds = time.perf_counter() - started
    if must_act and not done:
        raise RuntimeError(f"The run was over after {seconds:.2f} s, before anything was done to it.")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds


def workers_of(main: psutil.Process) -> list[psutil.Process]:
    """Children in the order in which they were started."""
    return sorted(main.children(), key=lambda child: (child.create_time(), child.pid))
