"""Who runs in bench/prepare.py, each as a whole process from start to finish."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psutil

RIVALS = {  # the slow ones get a part of the corpus, or a round would take an hour
    "a datasets.map": "datasets_map.py",
    "b datatrove": "datatrove_tokenizer.py",
    "c megatron pool": "megatron_preprocess.py",
    "d gigatoken+megatron": "gigatoken_megatron.py",
}
HERE = Path(__file__).parent


class Outcome(NamedTuple):
    seconds: float
    peak_mb: float  # of the largest single process
    tokens: int


def run_headrace(files: list[Path], tokenizer: str, out: Path, workers: int, *more: str) -> Outcome:
    command = [sys.executable, "-m", "headrace", "prepare", *map(str, files), "--tokenizer", tokenizer]
    command += ["--out", str(out), "--workers", str(workers), "--chunk-size", "2048", "--json", *more]
    seconds, peak, text = timed(command, out)
    return Outcome(seconds, peak, json.loads(text)["total_tokens"])


def run_rival(name: str, python: Path, files: list[Path], tokenizer: str, out: Path, workers: int) -> Outcome | None:
    """None where the rival cannot read this kind of input."""
    command = [str(python), str(HERE / "rivals" / RIVALS[name]), "--input", *map(str, files)]
    command += ["--tokenizer", tokenizer, "--out", str(out), "--workers", str(workers), "--chunk-size", "2048"]
    try:
        seconds, peak, text = timed(command, out)
    except subprocess.CalledProcessError as error:
        if error.returncode == 4:
            return None
        raise
    return Outcome(seconds, peak, json.loads(text.strip().splitlines()[-1])["tokens"])


def timed(command: list[str], out: Path) -> tuple[float, float, str]:
    shutil.rmtree(out, ignore_errors=True)
    os.sync()  # what the run before wrote is not this run's to wait for
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    memory = PeakMemory(process.pid)
    text, errors = process.communicate()
    seconds = time.perf_counter() - started
    if process.returncode:
        if process.returncode != 4:
            print(errors[-2000:], file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, memory.stop(), text


class PeakMemory(threading.Thread):
    """The highest resident size of any one process of a tree, from the kernel's own high-water marks."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root, self._peak, self._going = psutil.Process(pid), 0, True
        self.start()

    def run(self) -> None:
        while self._going:
            self._sample()
            time.sleep(0.5)  # often enough for a high-water mark, and no load on a small machine

    def stop(self) -> float:
        self._going = False
        self.join()
        return self._peak / 1024

    def _sample(self) -> None:
        try:
            processes = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return
        for process in processes:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                continue
            marks = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
            self._peak = max([self._peak, *marks])
