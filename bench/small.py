"""What must not grow with the input: start-up, opening a dataset, and the memory of a worker.

python bench/small.py --corpus big.jsonl --megabytes 500
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contenders import run_headrace
from corpus import make_corpus

OPEN = """
import time, sys
import numpy
from headrace import TokenStore
started = time.perf_counter()
store = TokenStore(sys.argv[1])
opened = time.perf_counter()
store[len(store) // 2].sum()
print((opened - started) * 1e3, (time.perf_counter() - opened) * 1e3)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, nargs="*", default=[])
    parser.add_argument("--megabytes", type=float, default=500, help="the large corpus; the small one is a tenth")
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokenizer", default="headrace-32k")
    args = parser.parse_args()
    result = {"help_seconds": median(args.rounds * 2, time_help), **time_small(args), **memory(args)}
    print(json.dumps(result, indent=1))


def median(rounds: int, measure: Callable[[], float]) -> float:
    return round(statistics.median(measure() for _ in range(rounds)), 3)


def time_help() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "headrace", "--help"], check=True, capture_output=True)
    return time.perf_counter() - started


def time_small(args: argparse.Namespace) -> dict[str, Any]:
    files = make_corpus(args.work / "corpus-1", 1, args.corpus)["jsonl"]
    out = args.work / "out"
    seconds = median(args.rounds, lambda: run_headrace(files, args.tokenizer, out, 2).seconds)
    return {"1_mb_start_to_finish_seconds": seconds}


def memory(args: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for share in (0.1, 1.0):
        size = args.megabytes * share
        files = make_corpus(args.work / f"corpus-{size:g}", size, args.corpus)
        for kind in ("jsonl", "parquet"):
            out = args.work / f"out-{size:g}"
            result[f"peak_mb_{kind}_{size:g}_mb"] = round(run_headrace(files[kind], args.tokenizer, out, 2).peak_mb)
        result[f"open_and_first_chunk_ms_{size:g}_mb"] = open_times(out)
    return result


def open_times(out: Path) -> list[float]:
    runs = [
        subprocess.run([sys.executable, "-c", OPEN, str(out)], check=True, capture_output=True, text=True)
        for _ in range(5)
    ]
    times = [tuple(map(float, run.stdout.split())) for run in runs]
    return [round(statistics.median(column), 2) for column in zip(*times, strict=True)]


if __name__ == "__main__":
    main()
