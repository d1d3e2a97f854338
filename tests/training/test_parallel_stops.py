"""`torchrun -m headrace train` that is stopped, goes on spread otherwise, and loses a rank."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from conftest_pipeline import make_texts, write_jsonl
from headrace import prepare
from headrace.training.checkpoint_folder import find_checkpoints, step_of

LONGEST = 600.0  # seconds until a test that hangs gives up, on a busy machine
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "headrace", "train")
MODEL = ("--size", "nano", "--model-option", "width=32", "--model-option", "ffn=64", "--model-option", "layers=2")
SHAPE = ("--seq-len", "32", "--batch-size", "4", "--steps", "1000000")
QUIET = ("--log-every", "2", "--eval-every", "500000", "--no-tensorboard", "--device", "cpu")


class Launch(NamedTuple):
    process: subprocess.Popen[bytes]
    errors: Path

    def rank(self, rank: int) -> int:
        """The process of a rank."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if child.environ().get("RANK") == str(rank):
                return child.pid
        raise AssertionError(f"rank {rank} is not there")

    def finish(self) -> str:
        assert self.process.wait(LONGEST) != 0
        return self.errors.read_text()


@contextmanager
def launched(folder: Path, name: str, *words: str) -> Iterator[Launch]:
    errors = folder / f"{name}.txt"
    command = [*TORCHRUN, str(folder / "tales"), *MODEL, *SHAPE, *QUIET, "--out", str(folder / "run"), *words]
    with open(errors, "wb") as file:
        process = subprocess.Popen(command, stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        yield Launch(process, errors)
    finally:
        process.terminate()  # torchrun ends its ranks; nothing happens where it has ended
        process.wait(LONGEST)


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    path = folder / "run" / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event for event in found if event["kind"] == kind]


def wait_for_step(folder: Path, launch: Launch, after: int = 0) -> None:
    limit = time.monotonic() + LONGEST
    while not any(event["step"] > after for event in events(folder, "step")):
        assert launch.process.poll() is None, launch.errors.read_text()
        assert time.monotonic() < limit, "no step was made"
        time.sleep(0.1)


def test_stopped_then_sharded_then_killed(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "tales.jsonl", make_texts(300))
    prepare(tmp_path / "tales.jsonl", out=tmp_path / "tales", tokenizer="bytes", chunk_size=64)

    # A signal to one rank stops both after the same step, with a checkpoint.
    with launched(tmp_path, "stopped") as launch:
        wait_for_step(tmp_path, launch)
        os.kill(launch.rank(1), signal.SIGTERM)
        said = launch.finish()
    (stopped,) = re.findall(r"Stopped by SIGTERM on rank 1 after step ([\d,]+); everything is saved", said)
    step = int(stopped.replace(",", ""))
    assert [step_of(path) for path in find_checkpoints(tmp_path / "run" / "checkpoints")] == [step]
    assert re.findall(r"exitcode *: (\d+)", said)[0] == "75", said
    assert (events(tmp_path, "run")[0]["ranks"], events(tmp_path, "run")[0]["parallel"]) == (2, "ddp")

    # The same command goes on in shards. A rank that is killed is named by the other, which torchrun would have killed
    # silently after 30 seconds.
    with launched(tmp_path, "killed", "--parallel", "fsdp") as launch:
        wait_for_step(tmp_path, launch, after=step)
        dead = launch.rank(1)
        os.kill(dead, signal.SIGKILL)
        said = launch.finish()
    assert f"Going on from step {step:,}" in said
    assert re.search(rf"^error: Rank 1 \(process {dead} on .*\) died\.", said, re.M), said
    assert f"Rank 1 (process {dead}" in events(tmp_path, "error")[-1]["text"]
