"""The two training examples beside each other: how much faster the fast way is, as they stand.

    python bench/slow_and_fast.py --rounds 5 --tokens 16384

Each runs in a process of its own, rounds are interleaved, imports and opening files are not counted, and the dataset
of the fast way is prepared once, whose time is reported apart. On a CPU asking for a number costs next to nothing,
because nothing runs beside the host; on a GPU each question waits for the device.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
FIGURES = re.compile(r"the (slow|fast) way: (\d+) tokens in ([\d.]+) s \(([\d.]+) s of CPU\)")
LOSS = re.compile(r"loss ([\d.]+)")


def main() -> None:
    args = parse()
    rates: dict[str, list[float]] = {"slow": [], "fast": []}
    per_cpu: dict[str, list[float]] = {"slow": [], "fast": []}
    with tempfile.TemporaryDirectory() as folder:
        run("fast", [f"{folder}/stdlib", "--tokens", "1", "--threads", args.threads])  # prepares, is not counted
        for number in range(args.rounds):
            for way, place in (("slow", []), ("fast", [f"{folder}/stdlib"])):
                text = run(way, [*place, "--tokens", args.tokens, "--threads", args.threads])
                seen, seconds, cpu = map(float, next(iter(FIGURES.finditer(text))).groups()[1:])
                rates[way].append(seen / seconds)
                per_cpu[way].append(seen / cpu)
                told = f"round {number + 1}: {way}: {seen / seconds:.0f} tokens/s, last loss {LOSS.findall(text)[-1]}"
                print(told, file=sys.stderr, flush=True)
    result = {
        "tokens_per_s": {way: round(statistics.median(found), 1) for way, found in rates.items()},
        "tokens_per_cpu_s": {way: round(statistics.median(found), 1) for way, found in per_cpu.items()},
        "factor": round(statistics.median(rates["fast"]) / statistics.median(rates["slow"]), 2),
        "factor_per_cpu_s": round(statistics.median(per_cpu["fast"]) / statistics.median(per_cpu["slow"]), 2),
        "all": {"tokens_per_s": rates, "tokens_per_cpu_s": per_cpu},
    }
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser.parse_args()


def run(way: str, arguments: list[object]) -> str:
    command = [sys.executable, str(EXAMPLES / f"train_the_{way}_way.py"), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def table(result: dict) -> str:
    lines = ["| | slow way | fast way | factor |", "|---|---:|---:|---:|"]
    for name, key, factor in (
        ("tokens/s", "tokens_per_s", "factor"),
        ("tokens per CPU-s", "tokens_per_cpu_s", "factor_per_cpu_s"),
    ):
        lines.append(f"| {name} | {result[key]['slow']:,.0f} | {result[key]['fast']:,.0f} | {result[factor]:.2f}x |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
