"""The dashboard: how long until something can be seen, for 200 runs and one of a million steps.

    python bench/dashboard.py --work WORK --rounds 5 --out dashboard.json

The runs are made once in WORK by the real Recorder, with a line for every step: 700 MB for the long one, 2 MB for each
of the others. Every round starts the real server (`headrace dashboard`) and asks it as a browser does. Cold is the
first question to a new server; with --evict its files are taken out of the page cache first. With --browser Chromium
opens the pages, in a profile that is new in each round. CPU is the time that the server computed, which a busy machine
changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

import psutil
from dashboard_data import make_folder, numbers, write_run

from headrace.telemetry import EventLog

PATIENCE = 600.0  # seconds
LINES = 10  # written to measure the stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--run-steps", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=1_000_000, help="of the long run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--evict", action="store_true", help="take the files out of the page cache before each round")
    parser.add_argument("--browser", action="store_true", help="measure in Chromium, too (needs playwright)")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    folder = make_folder(args.work / "dashboard", runs=args.runs, steps=args.run_steps, big=args.steps)
    found: dict[str, list[float]] = defaultdict(list)
    load = []
    for _ in range(args.rounds):
        load.append(os.getloadavg()[0])
        for name, value in one_round(folder, args).items():
            found[name].append(value)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {statistics.median(load):.1f} before a round",
        "runs": args.runs,
        "steps_of_the_long_run": args.steps,
        "rounds": args.rounds,
        "evicted": args.evict,
        "medians": {name: round(statistics.median(values), 1) for name, values in found.items()},
        "all": {name: [round(value, 1) for value in values] for name, values in found.items()},
    }
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def one_round(folder: Path, args: argparse.Namespace) -> dict[str, float]:
    live = folder / "live"
    if not live.exists():
        write_run(live, 100, seed=1)
    if args.evict:
        evict(folder)
    found: dict[str, float] = {}
    server = Server(folder, found)
    try:
        ask(server, found)
        stream(server, live, found)
        wait_for_all(server, found)
        if args.browser:
            from dashboard_browser import look

            found |= look(server.address, args.chromium)
    finally:
        server.stop(found)
    return found


class Server:
    def __init__(self, folder: Path, found: dict[str, float]) -> None:
        began = time.perf_counter()
        command = [sys.executable, "-m", "headrace", "dashboard", str(folder), "--data", str(folder.parent / "data")]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().rpartition(" ")[2].strip().rstrip("/")
        while True:
            try:
                self.get("/static/tokens.css")
                break
            except OSError:
                time.sleep(0.01)
        found["start the server, ms"] = 1000 * (time.perf_counter() - began)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE) as answer:
            whole: bytes = answer.read()
            return whole

    def timed(self, path: str) -> tuple[float, float]:
        """Milliseconds to the first byte, and to the last."""
        began = time.perf_counter()
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE) as answer:
            answer.read(1)
            first = time.perf_counter()
            answer.read()
        return 1000 * (first - began), 1000 * (time.perf_counter() - began)

    def megabytes(self) -> float:
        return psutil.Process(self._process.pid).memory_info().rss / 1e6

    def cpu(self) -> float:
        """Milliseconds, in steps of 10."""
        times = psutil.Process(self._process.pid).cpu_times()
        return 1000 * (times.user + times.system)

    def stop(self, found: dict[str, float]) -> None:
        began = time.perf_counter()
        self._process.send_signal(2)
        self._process.wait(PATIENCE)
        found["end by Ctrl-C, ms"] = 1000 * (time.perf_counter() - began)


def ask(server: Server, found: dict[str, float]) -> None:
    """The first time of each is cold."""
    found["memory at the start, MB"] = server.megabytes()
    for path in ("/", "/run/big"):
        before = server.cpu()
        found[f"{path} first byte, cold, ms"], _ = server.timed(path)
        found[f"{path} CPU, cold, ms"] = server.cpu() - before
    time.sleep(2)  # what is left of the histories is read meanwhile
    for path in ("/", "/api/runs", "/run/run-000", "/api/compare?runs=big,run-000,run-001"):
        before = server.cpu()
        found[f"{path} first byte, warm, ms"] = statistics.median(server.timed(path)[0] for _ in range(5))
        found[f"{path} CPU, warm, ms"] = (server.cpu() - before) / 5


def stream(server: Server, live: Path, found: dict[str, float]) -> None:
    """From a line that was written to the event that tells of it."""
    import random

    log, chance = EventLog(live / "events.jsonl"), random.Random(0)
    step = json.loads(server.get("/api/run/live"))["summary"]["step"]
    delays = []
    with urllib.request.urlopen(f"{server.address}/events?view=run&name=live", timeout=PATIENCE) as events:
        for _ in range(LINES):
            step += 1
            time.sleep(0.37)  # so that lines fall on all parts of a second
            log.write("step", step=step, **numbers(step, 10**6, chance))
            began = time.perf_counter()
            while f'"steps":[{step}]'.encode() not in (line := events.readline()) and f",{step}]".encode() not in line:
                pass
            delays.append(1000 * (time.perf_counter() - began))
    log.close()
    found["line to event, median, ms"], found["line to event, longest, ms"] = statistics.median(delays), max(delays)


def wait_for_all(server: Server, found: dict[str, float]) -> None:
    """Full resolution was asked for with the page of the long run, a while ago."""
    began = time.perf_counter()
    while not json.loads(server.get("/api/run/big?points=10"))["full"]:
        time.sleep(0.2)
        found["/ while the index is made, ms"] = server.timed("/")[0]
    found["until every step is there, after the rest, s"] = time.perf_counter() - began
    found["/run/big first byte, warm, ms"] = statistics.median(server.timed("/run/big")[0] for _ in range(5))
    near = "/api/run/big?from=500000&to=501000"
    found["zoom on 1,000 steps, ms"] = statistics.median(server.timed(near)[0] for _ in range(5))
    found["memory with every step, MB"] = server.megabytes()
    found["CPU of the server up to here, s"] = server.cpu() / 1000


def evict(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def table(result: dict[str, Any]) -> str:
    lines = ["| what | median | lowest - highest |", "|---|---:|---:|"]
    for name, median in result["medians"].items():
        values = result["all"][name]
        lines.append(f"| {name} | {median:,} | {min(values):,} - {max(values):,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
