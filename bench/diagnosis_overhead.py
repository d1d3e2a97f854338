"""What `headrace diagnose run` costs a step: one script three times at once, with the probe, without, and without.

The three take turns of about a second each, in the order 1 2 3 3 2 1; two of them stand still meanwhile. So what the
machine does beside this meets all three alike, and the two without the probe say how far two equal processes lie apart.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = {
    "nanogpt": "a loop as nanoGPT's, its settings for a CPU",
    "hf_trainer": "transformers' Trainer, GPT-2",
    "lightning_fit": "Lightning's Trainer",
    "small_steps": "a small model: hard, the steps are short",
    "many_reads": "1,000 values read with .item() in a step: harder, each is a call that is counted",
}
KINDS = ("with", "without", "again")
ORDER = (*KINDS, *reversed(KINDS))
WARM_UP = 4.0  # seconds of steps: the probe samples ten times as often in the first three
PATIENCE = 300  # seconds that a script may take until its first turn is over


class Racer:
    """One process of the three."""

    def __init__(self, script: str, probed: bool, folder: Path) -> None:
        address = str(folder / "turns")
        command = [sys.executable, str(HERE / "diagnosis_clock.py"), str(HERE / "diagnosis_scripts" / f"{script}.py")]
        if probed:
            command = [str(Path(sys.executable).with_name("headrace")), "diagnose", "run", "--", *command]
        with Listener(address) as listener:
            self.process = subprocess.Popen(
                command, env=environment() | {"DIAGNOSIS_TURNS": address}, cwd=folder,
                stdout=subprocess.DEVNULL, stderr=(folder / "stderr").open("w"),
            )  # fmt: skip
            self.channel = self._accept(listener, folder)
        self.first = self.answer()

    def _accept(self, listener: Listener, folder: Path) -> Connection:
        listener._listener._socket.settimeout(PATIENCE)  # type: ignore[attr-defined]  # it offers no other way
        try:
            return listener.accept()
        except TimeoutError:
            self.process.terminate()
            sys.exit((folder / "stderr").read_text())

    def answer(self) -> dict[str, float]:
        if not self.channel.poll(PATIENCE):
            raise TimeoutError(f"{self.process.args}: no answer in {PATIENCE} s")
        answer: dict[str, float] = self.channel.recv()
        return answer

    def turn(self, steps: int) -> dict[str, float]:
        """Milliseconds of a step."""
        self.channel.send(steps)
        return {name: value * 1e3 / steps for name, value in self.answer().items() if name != "steps"}

    def end(self) -> None:
        self.channel.send(0)
        self.process.wait(60)


def environment() -> dict[str, str]:
    """One thread for everyone, and nothing is fetched."""
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}
    return os.environ | offline | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def measure_overhead(scripts: list[str], rounds: int, turns: int, seconds: float) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {script: [] for script in scripts}
    with contextlib.suppress(KeyboardInterrupt):  # what is there by then counts
        for number, script in itertools.product(range(rounds), scripts):
            one = race(script, turns, seconds)
            found[script].append(one)
            with_probe = statistics.median(turn["with"]["cpu"] / between(turn, "cpu") for turn in one["turns"])
            told = f"round {number + 1}: {script}: {with_probe - 1:+.2%} of CPU time, turns of {one['steps']} steps"
            print(told, file=sys.stderr, flush=True)
    return [summary(script, races) for script, races in found.items() if races]


def race(script: str, turns: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="diagnosis-") as folder:
        racers = {}
        for kind in KINDS:
            own = Path(folder) / kind
            own.mkdir()
            racers[kind] = Racer(script, kind == "with", own)
        step = racers["without"].turn(10)["wall"]
        steps = max(2, round(seconds * 1e3 / step))
        for racer in racers.values():
            racer.turn(max(steps, round(WARM_UP * 1e3 / step)))
        rows = [sixfold(racers, steps) for _ in range(turns)]
        for racer in racers.values():
            racer.end()
    return {"steps": steps, "turns": rows, "start": {kind: racer.first["cpu"] for kind, racer in racers.items()}}


def sixfold(racers: dict[str, Racer], steps: int) -> dict[str, dict[str, float]]:
    """Two turns of each, their mean."""
    taken: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for kind in ORDER:
        taken[kind].append(racers[kind].turn(steps))
    return {kind: {clock: statistics.fmean(t[clock] for t in two) for clock in two[0]} for kind, two in taken.items()}


def between(turn: dict[str, dict[str, float]], clock: str) -> float:
    """A step without the probe."""
    return (turn["without"][clock] + turn["again"][clock]) / 2


def summary(script: str, races: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"script": script, "is": SCRIPTS[script], "steps_of_a_turn": races[-1]["steps"]}
    row["turns"] = sum(len(one["turns"]) for one in races)
    for clock in ("cpu", "wall"):
        costs = [[turn["with"][clock] / between(turn, clock) - 1 for turn in one["turns"]] for one in races]
        noise = [[turn["again"][clock] / turn["without"][clock] - 1 for turn in one["turns"]] for one in races]
        row[clock] = {
            "step_ms": statistics.median(between(turn, clock) for one in races for turn in one["turns"]),
            "overhead": statistics.median(value for one in costs for value in one),
            "overhead_of_rounds": [statistics.median(one) for one in costs],
            "same": statistics.median(value for one in noise for value in one),
            "same_of_rounds": [statistics.median(one) for one in noise],
        }
    starts = [one["start"]["with"] - (one["start"]["without"] + one["start"]["again"]) / 2 for one in races]
    row["start_s"] = statistics.median(starts)
    return row
