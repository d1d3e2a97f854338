"""What `headrace diagnose run` costs, and whether it keeps its promises.

    python bench/diagnosis.py --overhead --rounds 5 --out bench/results/DATE-diagnosis-overhead
    python bench/diagnosis.py --gains --rounds 5 --out bench/results/DATE-diagnosis-gains
    python bench/diagnosis.py --quick                                  # both, with a round of each, to see that it runs

Overhead: scripts of diagnosis_scripts/, three processes of each, one with the probe and two without, which take turns;
see diagnosis_overhead.py. CPU time is that of the whole process, the probe's thread included. "Two without" is what the
same comparison says of two processes that both run without the probe: differences of that size mean nothing.

Gains: the scripts with a fault of tests/diagnosis/scripts against those of diagnosis_fixed/, which follow the first
advice and nothing else; see diagnosis_gains.py. One thread for all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from diagnosis_gains import measure_gains, names
from diagnosis_overhead import SCRIPTS, measure_overhead
from diagnosis_table import table


def main() -> None:
    args = parse()
    result = described(args)
    if args.overhead:
        result["overhead"] = measure_overhead(args.scripts or list(SCRIPTS), args.rounds, args.turns, args.seconds)
    if args.gains:
        result["gains"] = gains(args)
        result["not_run"] = sorted(set(names()) - {row["script"] for row in result["gains"]})
    text = table(result)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.with_name(args.out.name + ".json").write_text(json.dumps(result, indent=1) + "\n")
        args.out.with_name(args.out.name + ".md").write_text(text + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--overhead", action="store_true", help="what the probe costs")
    parser.add_argument("--gains", action="store_true", help="predicted and reached")
    parser.add_argument("--quick", action="store_true", help="one short round, of both if neither is named")
    parser.add_argument("--scripts", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--rounds", type=int, default=5, help="of new processes")
    parser.add_argument("--turns", type=int, default=6, help="six turns each, so many times in a round of --overhead")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    parser.add_argument("--work", type=Path, help="for prepared data and reports (default: a temporary folder)")
    parser.add_argument("--out", type=Path, metavar="PREFIX", help="write PREFIX.json and PREFIX.md")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.turns, args.seconds = 1, 2, 0.3
    if not args.overhead and not args.gains:
        args.overhead = args.gains = True
    return args


def described(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", "bench/diagnosis.py", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": os.getloadavg(),
        "versions": {name: version(name) for name in ("torch", "transformers", "lightning", "tokenizers")},
        "rounds": args.rounds,
        "turns": args.turns,
        "seconds": args.seconds,
    }


def gains(args: argparse.Namespace) -> list[dict[str, Any]]:
    scripts = args.scripts or names()
    if args.work:
        return measure_gains(scripts, args.rounds, args.work.resolve())
    with tempfile.TemporaryDirectory(prefix="diagnosis-") as folder:
        return measure_gains(scripts, args.rounds, Path(folder))


if __name__ == "__main__":
    main()
