"""The runs of bench/models_quality.py: each a `headrace train` process, done once, gone on with if it was stopped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = "results.jsonl"
POLL = 0.2  # seconds


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """All that decides a result."""

    dataset: str
    variant: str
    model: str
    options: dict[str, Any]
    lr: float
    seed: int
    size: str
    seq_len: int
    batch_size: int
    steps: int
    precision: str
    eval_batches: int
    eval_every: int
    optimizer: str = "adamw"

    @property
    def name(self) -> str:
        told = {**asdict(self), "dataset": str(Path(self.dataset).absolute())}
        if self.optimizer == "adamw":
            del told["optimizer"]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]
        return f"{Path(self.dataset).name}-{self.variant}-{self.seed}-{digest}"

    @property
    def title(self) -> str:
        return f"{self.variant} on {Path(self.dataset).name}, seed {self.seed}"

    def command(self, work: Path) -> list[str]:
        options = [word for name, value in self.options.items()
                   for word in ("--model-option", f"{name}={json.dumps(value)}")]  # fmt: skip
        settings = {
            "--model": self.model, "--size": self.size, "--seq-len": self.seq_len, "--batch-size": self.batch_size,
            "--steps": self.steps, "--lr": self.lr, "--precision": self.precision, "--seed": self.seed,
            "--optimizer": self.optimizer, "--eval-batches": self.eval_batches, "--eval-every": self.eval_every,
            "--keep-last": 1, "--out": work / self.name,
        }  # fmt: skip
        words = [str(word) for pair in settings.items() for word in pair]
        return [sys.executable, "-m", "headrace", "train", self.dataset, *words, *options, "--no-tensorboard", "--json"]

    def record(self, work: Path) -> dict[str, Any]:
        """{"result": ...} of a finished run, {"failed": why} of one that failed; the last line of its name counts."""
        if not (work / RESULTS).exists():
            return {}
        lines = [json.loads(line) for line in (work / RESULTS).read_text().splitlines()]
        return next((line for line in reversed(lines) if line["run"] == self.name), {})


def run_all(runs: Sequence[Run], work: Path, *, jobs: int, keep: bool) -> None:
    """Do what is not done or failed before, so many at a time and in this order."""
    waiting = [run for run in runs if "result" not in run.record(work)]
    print(f"{len(runs) - len(waiting)} of {len(runs)} runs are there", file=sys.stderr, flush=True)
    going: dict[Run, tuple[subprocess.Popen[bytes], float]] = {}
    number = len(runs) - len(waiting)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        while waiting or going:
            while waiting and len(going) < jobs:
                run = waiting.pop(0)
                going[run] = (start(run, work), time.monotonic())
            time.sleep(POLL)
            for run in [run for run, (process, _) in going.items() if process.poll() is not None]:
                process, began = going.pop(run)
                number += 1
                finish(run, work, process.returncode, f"{number}/{len(runs)}", began, keep=keep)
    except KeyboardInterrupt:
        stop([process for process, _ in going.values()])
        sys.exit("Stopped; the same command goes on.")


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def start(run: Run, work: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, so that a Ctrl-C reaches it once, from here."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with open(work / f"{run.name}.log", "ab") as log:
        return subprocess.Popen(
            run.command(work), env=os.environ | threads, stdout=log, stderr=log, start_new_session=True
        )


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Each saves a checkpoint and ends."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait()


def finish(run: Run, work: Path, code: int, place: str, began: float, *, keep: bool) -> None:
    """Write down what came of it."""
    log = work / f"{run.name}.log"
    said = log.read_text(errors="replace").strip().splitlines()[-3:] if code else []
    result = read_run(work / run.name) if not code else {}
    told = {"failed": said[-1][:300] if said else f"exit code {code}"} if code else {"result": result}
    with open(work / RESULTS, "a") as file:
        file.write(json.dumps({"run": run.name, **told}) + "\n")
    if code:
        print(f"{place} {run.title} FAILED with exit code {code}, see {log}:\n  " + "\n  ".join(said), file=sys.stderr)
        return
    if not keep:
        shutil.rmtree(work / run.name / "checkpoints")
    print(
        f"{place} {run.title}: validation {result['val_loss']:.4f}, accuracy {result['accuracy']:.1%}, "
        f"{result['tokens_per_second']:,.0f} tokens/s, {(time.monotonic() - began) / 60:.1f} min",
        file=sys.stderr,
        flush=True,
    )


def read_run(folder: Path) -> dict[str, Any]:
    """What a run says of itself. The rate is the median over its intervals, without evaluation and checkpoints."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    of_kind = {kind: [event for event in events if event["kind"] == kind] for kind in ("run", "step", "eval", "end")}
    last, end = of_kind["eval"][-1], of_kind["end"][-1]
    assert last["step"] == end["step"]
    return {
        "parameters": of_kind["run"][-1]["parameters"],
        "tokens": end["tokens"],
        "train_loss": end["loss"],
        "val_loss": last["val_loss"],
        "val_tokens": last["val_tokens"],
        "accuracy": last["accuracy"],
        "tokens_per_second": statistics.median(event["tokens_per_second"] for event in of_kind["step"]),
        "metrics": of_kind["step"][-1].get("metrics", {}),
        "curve": [[event["step"], event["val_loss"]] for event in of_kind["eval"]],
    }
