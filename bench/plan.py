"""Predictions of `headrace plan` against real runs: calm ones, one that loses a worker, a straggler, slow storage.

    python bench/plan.py --corpus corpus.jsonl --megabytes 150 --rounds 3 --out plan.json

Every fourth document calibrates: tasks on them give the rate of a core, a run over a third of them the seconds that do
not grow, and the bare engine in one and in two processes what a core keeps when both work. The other documents are
predicted from that alone, and only then run. Give it a quiet machine, and 100 MB or more: input up to 8 MiB is prepared
without worker processes, and the third of the fourth should have more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from contenders import run_headrace
from corpus import PARTS, take, text_bytes, write_part
from plan_faults import run_killing, run_stopping
from prepare import bare_engines, psutil_cores

from headrace.pipeline.estimate import Tasks, Workload, make_tasks
from headrace.pipeline.estimate_measure import measure
from headrace.pipeline.estimate_rates import Profile, profile_of
from headrace.pipeline.simulate import Cluster, simulate

HERE = Path(__file__).parent
LIMIT = 0.15
CALIBRATE_EVERY = 4
KINDS = ("jsonl", "jsonl.zst", "parquet")
RESTART = 0.5  # seconds until a new worker process has its first task
KILL_AFTER, STOP_SHARE = 0.5, 0.5  # of the tasks; of a straggler's time
STORAGE_SHARE = 0.4  # of what two workers would take


def main() -> None:
    args = parse()
    corpora = make_corpora(args)
    known = calibrate(args, corpora)
    rows = [check(args, corpora, known, *case) for case in cases(args)]
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {len(psutil_cores())} cores",
        "megabytes": args.megabytes,
        "rounds": args.rounds,
        "calibration": known,
        "rows": rows,
        "all_within_15_percent": all(row["within_15_percent"] for row in rows),
    }
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="JSONL, Parquet, text files or folders")
    parser.add_argument(
        "--megabytes", type=float, default=150, help="of text that is predicted; a third more calibrates"
    )
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenizer", default="headrace-32k")
    parser.add_argument("--kinds", nargs="*", default=["jsonl", "parquet"], choices=KINDS)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser.parse_args()


def make_corpora(args: argparse.Namespace) -> dict[str, dict[str, list[Path]]]:
    """Documents that calibrate (a third of them again as `small`), and others that are predicted."""
    folder = args.work / f"plan-{args.megabytes:g}"
    names = ("small", "calibrate", "predict")
    files = {n: {kind: [folder / n / f"part-{i}.{kind}" for i in range(PARTS)] for kind in KINDS} for n in names}
    if not (folder / "whole").is_file():
        texts = list(take(args.corpus, int(args.megabytes * 1e6 * CALIBRATE_EVERY / (CALIBRATE_EVERY - 1))))
        mine = texts[::CALIBRATE_EVERY]
        others = [text for number, text in enumerate(texts) if number % CALIBRATE_EVERY]
        for name, chosen in (("small", mine[::3]), ("calibrate", mine), ("predict", others)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            for i in range(PARTS):
                write_part(chosen[i::PARTS], {kind: files[name][kind][i] for kind in KINDS})
        (folder / "whole").touch()
    return files


def calibrate(args: argparse.Namespace, corpora: dict[str, dict[str, list[Path]]]) -> dict[str, Any]:
    """The rate of a core and the seconds that do not grow, by kind; and what a core keeps when two work.

    The rate is by the processor, as `headrace plan --measure` finds it. Taken from the clock at two sizes it came out
    negative on a busy machine: 33 MB are a third of a second, and start-up varies by more.
    """
    known: dict[str, Any] = {}
    small = text_bytes(corpora["small"]["jsonl"])
    for kind in args.kinds:
        folder = str(corpora["calibrate"][kind][0].parent / f"*.{kind}")
        rates = [measure(folder, args.tokenizer, seconds=20, seed=n)[0].core_mb_per_s for n in range(args.rounds)]
        seconds, rate = median(args, partial(run, args, corpora["small"][kind], 1)), statistics.median(rates)
        known[kind] = {"fixed": seconds - small / rate / 1e6, "mb_per_s": rate, "all_mb_per_s": rates, "small": seconds}
        if known[kind]["fixed"] < 0:
            sys.exit(
                f"{kind}: {seconds:.2f} s for {small:,} bytes is less than the work in them. Is the machine quiet?"
            )
    texts = corpora["calibrate"]["jsonl"]
    one, two = (median(args, partial(bare_seconds, texts, args.tokenizer, count)) for count in (1, 2))
    known["crowded"] = min(1.0, one / (2 * two))
    return known


def bare_seconds(files: list[Path], tokenizer: str, count: int) -> float:
    return bare_engines(files, tokenizer, count).seconds


def cases(args: argparse.Namespace) -> list[tuple[str, str, int]]:
    calm = [("calm", kind, workers) for kind in args.kinds for workers in (1, 2)]
    return [*calm, ("a worker is killed", "jsonl", 2), ("a straggler", "jsonl", 2), ("slow storage", "jsonl", 2)]


def check(
    args: argparse.Namespace,
    corpora: dict[str, dict[str, list[Path]]],
    known: dict[str, Any],
    what: str,
    kind: str,
    workers: int,
) -> dict[str, Any]:
    """Predict, and then run."""
    files = corpora["predict"][kind]
    tasks = imagined(corpora, known, kind, workers)
    cluster = Cluster(
        workers=workers, workers_per_node=1, restart_seconds=RESTART, start_seconds=max(0.0, known[kind]["fixed"])
    )
    calm = simulate(tasks.seconds, tasks.moved, cluster).seconds
    moment = cluster.start_seconds + KILL_AFTER * (calm - cluster.start_seconds)
    rate = sum(tasks.moved) / sum(tasks.seconds) * workers * STORAGE_SHARE
    changed: dict[str, tuple[Cluster, Callable[[], float]]] = {
        "calm": (cluster, lambda: run(args, files, workers)),
        "a worker is killed": (
            replace(cluster, losses=((moment, 0),)),
            lambda: run_killing(args, files, workers, max(1, int(KILL_AFTER * len(tasks.seconds)))),
        ),
        "a straggler": (
            replace(cluster, slow_nodes=0.5, slowdown=1 / (1 - STOP_SHARE)),
            lambda: run_stopping(args, files, workers, STOP_SHARE),
        ),
        "slow storage": (replace(cluster, storage_bytes_per_s=rate), lambda: run_slow(args, files, workers, rate)),
    }
    where, really = changed[what]
    predicted = simulate(tasks.seconds, tasks.moved, where).seconds
    measured = [really() for _ in range(args.rounds)]
    error = predicted / statistics.median(measured) - 1
    return {
        "what": what,
        "input": kind,
        "workers": workers,
        "predicted_s": round(predicted, 3),
        "measured_s": round(statistics.median(measured), 3),
        "all_measured_s": [round(one, 3) for one in measured],
        "error": round(error, 4),
        "within_15_percent": abs(error) <= LIMIT,
    }


def imagined(corpora: dict[str, dict[str, list[Path]]], known: dict[str, Any], kind: str, workers: int) -> Tasks:
    """The tasks of the run that is predicted; the bytes that they move are those that they read."""
    files = corpora["predict"][kind]
    size, text = sum(path.stat().st_size for path in files), text_bytes(corpora["predict"]["jsonl"])
    base: Profile = profile_of("headrace-32k", kind)
    fields = {name: getattr(base, name) for name in base.__struct_fields__}
    fields |= {
        "core_mb_per_s": known[kind]["mb_per_s"],
        "crowded": known["crowded"],
        "file_bytes_per_byte": size / text,
    }
    load = Workload(
        text_bytes=text, profiles={kind: Profile(**fields)}, shares={kind: 1.0}, file_bytes=-(-size // PARTS)
    )
    tasks = make_tasks(load, workers)
    return Tasks(tasks.input_bytes, tasks.seconds, [float(one) for one in tasks.input_bytes])


def run(args: argparse.Namespace, files: list[Path], workers: int) -> float:
    return run_headrace(files, args.tokenizer, args.work / "plan-out", workers).seconds


def run_slow(args: argparse.Namespace, files: list[Path], workers: int, rate: float) -> float:
    """The run with every process reading its input through bench/plan_slow_storage."""
    queue = (args.work / "plan-queue").absolute()
    queue.write_bytes(struct.pack("<d", 0.0))
    before = dict(os.environ)
    paths = [str(HERE / "plan_slow_storage"), *filter(None, [before.get("PYTHONPATH")])]
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "HEADRACE_SLOW_FOLDER": str(files[0].absolute().parent),
        "HEADRACE_SLOW_QUEUE": str(queue),
        "HEADRACE_SLOW_BYTES_PER_S": repr(rate),
    }
    try:
        return run(args, [path.absolute() for path in files], workers)
    finally:
        os.environ.clear()
        os.environ.update(before)


def median(args: argparse.Namespace, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(args.rounds))


def table(result: dict[str, Any]) -> str:
    lines = ["| run | input | workers | predicted s | measured s | error |", "|---|---|---:|---:|---:|---:|"]
    for row in result["rows"]:
        lines.append(
            f"| {row['what']} | {row['input']} | {row['workers']} | {row['predicted_s']:.2f} | "
            f"{row['measured_s']:.2f} | {row['error']:+.1%} |"
        )
    return "\n".join([*lines, "", f"All within 15%: {'yes' if result['all_within_15_percent'] else 'no'}."])


if __name__ == "__main__":
    main()
