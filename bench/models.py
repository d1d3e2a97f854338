"""What a token costs each model as sequences grow: time and memory of training, time and cache of generation.

    python bench/models.py --rounds 3 --out bench/results/DATE-models --picture docs/images/models-per-token.png
    python bench/models.py --from bench/results/DATE-models.json --picture docs/images/models-per-token.png

Each cell is a process of its own, and rounds are interleaved: every model at a length, then the next length, then all
again. Models have the size `micro` with their context raised to the length. A training cell is one forward and one
backward pass over at least 4,096 tokens, after one to warm up. Times are medians of CPU-seconds (--clock wall for the
clock on the wall), so that others on the machine disturb less. A cell that fails is in the table as failed.
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
from collections import defaultdict
from pathlib import Path
from typing import Any

from contender_process import HERE, _end_group
from models_table import draw_picture, models_table

TOKENS = 4096  # of one measurement at least
Key = tuple[str, int, str]  # verb, length, model


def main() -> None:
    args = parse()
    result = json.loads(args.saved.read_text()) if args.saved else measure(args)
    text = models_table(result)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.with_name(args.out.name + ".json").write_text(json.dumps(result, indent=1) + "\n")
        args.out.with_name(args.out.name + ".md").write_text(text + "\n")
    if args.picture:
        draw_picture(result, args.picture)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", metavar="NAME", help="the default is all that Headrace has")
    parser.add_argument("--lengths", type=int, nargs="*", default=[512, 1024, 2048, 4096, 8192, 16_384])
    parser.add_argument("--positions", type=int, nargs="*", default=[256, 512, 1024, 2048, 4096, 8192],
                        help="tokens before the ones that are generated")  # fmt: skip
    parser.add_argument("--size", default="micro")
    parser.add_argument("--vocab", type=int, default=32_768)
    parser.add_argument("--option", action="append", default=[], metavar="MODEL.NAME=VALUE", help="of a model's config")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=["cpu", "wall"], default="cpu")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds of one cell")
    parser.add_argument(
        "--work", type=Path, default=Path("bench/work/models"), help="for what cells say when they fail"
    )
    parser.add_argument("--out", type=Path, metavar="PREFIX", help="write PREFIX.json and PREFIX.md")
    parser.add_argument("--picture", type=Path, help="write the times as a PNG")
    parser.add_argument("--from", dest="saved", type=Path, metavar="JSON", help="measure nothing, show this result")
    args = parser.parse_args()
    if args.models is None and args.saved is None:
        from headrace.models import MODELS

        args.models = list(MODELS)
    return args


def measure(args: argparse.Namespace) -> dict[str, Any]:
    limit = available_memory()
    cells = [("train", length) for length in args.lengths] + [("generate", place) for place in args.positions]
    runs: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for number in range(args.rounds):
        for verb, length in cells:
            for model in args.models:
                found = runs[verb, length, model]
                if found and "failed" in found[-1]:
                    continue  # it would fail again
                found.append(run_cell(args, verb, length, model, limit))
                tell(args, number, verb, length, model, found[-1])
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", "bench/models.py", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": os.getloadavg(),
        **{key: getattr(args, key) for key in ("models", "size", "vocab", "precision", "threads", "rounds", "clock")},
        "rows": [summary(key, found, args.clock) for key, found in runs.items()],
    }


def summary(key: Key, found: list[dict[str, Any]], clock: str) -> dict[str, Any]:
    verb, length, model = key
    row = {"verb": verb, "length": length, "model": model, "rows": rows_of(verb, length)}
    failed = next((one["failed"] for one in found if "failed" in one), None)
    if failed:
        return {**row, "failed": failed}
    medians = {name: statistics.median(one[name] for one in found) for name in found[0]}
    return {**row, **medians, "time": medians[clock], "all_time": [one[clock] for one in found]}


def rows_of(verb: str, length: int) -> int:
    return max(1, TOKENS // length) if verb == "train" else 1


def run_cell(args: argparse.Namespace, verb: str, length: int, model: str, limit: int) -> dict[str, Any]:
    """The answer of a cell, or {"failed": why}; the whole of what it said is then kept in --work."""
    spec = {
        "verb": verb, "length": length, "rows": rows_of(verb, length), "model": model, "size": args.size,
        "vocab": args.vocab, "options": options_of(args.option, model), "precision": args.precision,
        "threads": args.threads, "memory_limit": limit,
    }  # fmt: skip
    threads = {"OMP_NUM_THREADS": str(args.threads), "MKL_NUM_THREADS": str(args.threads)}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "models_cell", json.dumps(spec)], cwd=HERE, env=os.environ | threads,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        text, errors = process.communicate(timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {args.timeout:,.0f} s"}
    finally:
        _end_group(process.pid)
        process.wait()
    if process.returncode == 0:
        return dict(json.loads(text.strip().splitlines()[-1]))
    args.work.mkdir(parents=True, exist_ok=True)
    (args.work / f"{verb}-{length}-{model}.log").write_text(f"{text}\n{errors}\nexit code {process.returncode}\n")
    return {"failed": reason(process.returncode, errors)}


def reason(code: int, errors: str) -> str:
    if code == -9 or "can't allocate memory" in errors or "MemoryError" in errors:
        return "out of memory"
    last = (errors.strip().splitlines() or [f"exit code {code}"])[-1]
    return last[:80].replace("|", "/")


def options_of(given: list[str], model: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        owner, _, option = name.partition(".")
        if not value or not option:
            sys.exit(f"--option {text}: write MODEL.NAME=VALUE, transformer.layers=4 for example")
        if owner == model:
            try:
                found[option] = json.loads(value)
            except ValueError:
                found[option] = value
    return found


def available_memory() -> int:
    """Bytes; a cell that wants more fails by itself instead of taking the machine with it."""
    with open("/proc/meminfo") as file:
        line = next(line for line in file if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


def tell(args: argparse.Namespace, number: int, verb: str, length: int, model: str, found: dict[str, Any]) -> None:
    said = found.get("failed") or f"{found[args.clock] * 1e3:.3f} ms per token, {found['memory'] / 1e6:,.1f} MB"
    print(f"round {number + 1}: {verb} {length:,}, {model}: {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
