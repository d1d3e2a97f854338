"""Batches of int64 inputs and targets, side by side: headrace's Loader, the copy limit, and how people load tokens.

    bench/rivals/setup.sh VENV                                   # the rivals' environments, once
    python bench/loading.py DATASET --rivals VENV --work WORK --check
    python bench/loading.py DATASET --rivals VENV --work WORK --rounds 5 --seconds 2 --out loading.json

The second command checks on a small part that every contender gives the dataset's tokens; the third is the full run,
about 20 minutes. DATASET should be 150 million tokens or more; whole shards are taken until --tokens are reached.
Everyone reads the same tokens from the page cache, in a process of its own, with imports done before the clock starts.
The first two batches are warm-up, and the time to the first is reported apart. Rounds are interleaved; the table has
medians, the JSON every run. Rivals' files are made once, in WORK. Without --rivals only headrace and the limit run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from loading_data import cut_dataset, flatten, spec_for, warm
from loading_run import CONTENDERS, Contender, run
from prepare import psutil_cores

Runs = dict[tuple[str, str, int], list[dict[str, Any]]]
LIMIT, OURS = "copy_limit", "headrace"
HEADER = (
    "| who | workers | gives | Mtok/s (median) | lowest - highest | of the limit | headrace is | first batch ms | "
    "conversion s |"
)
CHECKED = (8, 256)  # rows and length of a batch when only the tokens are compared


def main() -> None:
    args = parse()
    contenders = [one for one in CONTENDERS if one.name in args.only and (args.rivals or not one.environment)]
    if args.check:
        check(args, contenders)
        return
    dataset = cut_dataset(args.dataset, int(args.tokens), args.work)
    flat = flatten(dataset)
    described = {
        one.name: run(one, "describe", args.rivals, {"spec": spec_for(dataset, flat, one, 1, 1)}) for one in contenders
    }
    runs: Runs = defaultdict(list)
    conversions: dict[str, float] = {}
    for number in range(args.rounds):
        for shape in args.shapes:
            measure_round(args, number, shape, contenders, described, dataset, flat, runs, conversions)
    result = summary(args, dataset, described, runs, conversions)
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="a prepared dataset of one shard or more")
    parser.add_argument("--rivals", type=Path, help="the environment that bench/rivals/setup.sh made")
    parser.add_argument("--work", type=Path, default=Path("bench/work"), help="for the rivals' files; kept")
    parser.add_argument("--tokens", type=float, default=150e6, help="how much of the dataset is used")
    parser.add_argument("--shapes", nargs="*", default=["32x2048", "8x32768"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a contender is timed in a round")
    parser.add_argument("--only", nargs="*", default=[one.name for one in CONTENDERS], help="contenders to run")
    parser.add_argument("--check", action="store_true", help="compare tokens, measure nothing")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser.parse_args()


def check(args: argparse.Namespace, contenders: list[Contender]) -> None:
    """Most of an epoch of one shard from everyone, against the tokens themselves."""
    dataset = cut_dataset(args.dataset, 1, args.work)
    flat = flatten(dataset)
    for one in contenders:
        order = {"spec": spec_for(dataset, flat, one, *CHECKED)}
        converted(one, args.rivals, order)
        for workers in run(one, "describe", args.rivals, order)["workers"]:
            rows = run(one, "check", args.rivals, order, workers)["rows"]
            print(f"{one.name}, {workers} workers: {rows:,} rows are right", flush=True)


def measure_round(
    args: argparse.Namespace,
    number: int,
    shape: str,
    contenders: list[Contender],
    described: dict[str, dict[str, Any]],
    dataset: Path,
    flat: Path,
    runs: Runs,
    conversions: dict[str, float],
) -> None:
    rows, length = map(int, shape.split("x"))
    for one in contenders:
        order = {"spec": spec_for(dataset, flat, one, rows, length), "seconds": args.seconds}
        if number == 0:
            conversions[f"{one.name} {shape}"] = converted(one, args.rivals, order)
        own = Path(order["spec"]["folder"])
        warm([dataset, flat, own, *(path for path in own.rglob("*") if path.is_dir())])
        for workers in described[one.name]["workers"]:
            outcome = run(one, "measure", args.rivals, order, workers)
            runs[shape, one.name, workers].append(outcome)
            rate, first = outcome["mtok_per_s"], outcome["first_ms"]
            told = f"round {number + 1}: {shape} {one.name} x{workers}: {rate:.1f} Mtok/s, first batch {first:.0f} ms"
            print(told, file=sys.stderr, flush=True)


def converted(one: Contender, rivals: Path | None, order: dict[str, Any]) -> float:
    """Seconds that making the contender's files took, now or when they were made."""
    done = Path(order["spec"]["folder"]) / "converted.json"
    if not done.is_file():
        done.parent.mkdir(parents=True, exist_ok=True)
        done.write_text(json.dumps(run(one, "convert", rivals, order)))
    return float(json.loads(done.read_text())["seconds"])


def summary(
    args: argparse.Namespace, dataset: Path, described: dict[str, Any], runs: Runs, conversions: dict[str, float]
) -> dict[str, Any]:
    limits = {shape: median(found, "mtok_per_s") for (shape, name, _), found in runs.items() if name == LIMIT}
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {len(psutil_cores())} cores",
        "load_average": os.getloadavg(),
        "tokens": json.loads((dataset / "metadata.json").read_text())["total_tokens"],
        "rounds": args.rounds,
        "rows": [
            {
                "shape": shape,
                "contender": name,
                "workers": workers,
                "version": described[name]["version"],
                "gives": described[name]["gives"],
                "mtok_per_s": round(median(found, "mtok_per_s"), 2),
                "share_of_limit": round(median(found, "mtok_per_s") / limits[shape], 4) if shape in limits else None,
                "first_batch_ms": round(median(found, "first_ms"), 1),
                "conversion_s": round(conversions[f"{name} {shape}"], 1),
                "all_mtok_per_s": [round(one["mtok_per_s"], 2) for one in found],
                "all_first_batch_ms": [round(one["first_ms"], 1) for one in found],
            }
            for (shape, name, workers), found in runs.items()
        ],
    }


def median(found: list[dict[str, Any]], key: str) -> float:
    return statistics.median(one[key] for one in found)


def table(result: dict[str, Any]) -> str:
    lines = []
    for shape in dict.fromkeys(row["shape"] for row in result["rows"]):
        rows = sorted((r for r in result["rows"] if r["shape"] == shape), key=lambda r: -r["mtok_per_s"])
        ours = next((r["mtok_per_s"] for r in rows if r["contender"] == OURS), None)
        lines += [
            f"{shape}, int64, {result['tokens'] / 1e6:.0f} million tokens, {result['rounds']} rounds",
            "",
            HEADER,
            "|---|---:|---|---:|---:|---:|---:|---:|---:|",
            *(line(r, ours) for r in rows),
            "",
        ]
    return "\n".join(lines)


def line(r: dict[str, Any], ours: float | None) -> str:
    rival = r["contender"] not in (OURS, LIMIT)
    who = f"{r['contender']} ({r['version']})" if rival else r["contender"]
    ratio = f"{ours / r['mtok_per_s']:.1f}x" if ours and rival else ""
    share = f"{r['share_of_limit']:.1%}" if r["share_of_limit"] is not None else ""
    made = f"{r['conversion_s']:.1f}" if r["conversion_s"] >= 0.1 else ""
    spread = f"{min(r['all_mtok_per_s']):,.1f} - {max(r['all_mtok_per_s']):,.1f}"
    return (
        f"| {who} | {r['workers']} | {r['gives']} | {r['mtok_per_s']:,.1f} | {spread} | {share} | {ratio} | "
        f"{r['first_batch_ms']:,.0f} | {made} |"
    )


if __name__ == "__main__":
    main()
