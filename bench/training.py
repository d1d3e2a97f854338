"""Training one model side by side: headrace's loop, nanoGPT's, litgpt's and Hugging Face's Trainer.

    bench/rivals/setup.sh VENV                                             # the rivals' environments, once
    python bench/training.py --rivals VENV --work WORK --check             # the models are equal
    python bench/training.py --rivals VENV --work WORK --rounds 5 --out training.json

Everyone trains a Llama of the same shape from the same weights on the same tokens in fp32, eager, each in a process of
its own, with rounds interleaved. Tokens per CPU-second are tokens of the counted steps over user and system time of
the process and its children; steps before them are warm-up. The loss is on held-out rows, the same for everyone.
--check builds the models only and compares the loss of the first weights, which must be equal. Without --rivals only
headrace runs; without DATASET the Python library's source is prepared in WORK.
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

from prepare import psutil_cores
from training_data import prepared, spec_for
from training_run import CONTENDERS, OURS, Contender, run

Runs = dict[tuple[int, str], list[dict[str, Any]]]
SAME = 1e-4  # of a first loss near 10.6: rounding differs with the order of sums
MEDIANS = ("tokens_per_cpu_s", "tokens_per_s", "system_share", "faults_per_step", "peak_mb", "first_loss", "loss")
HEADER = (
    "| who | tokens per CPU-s (median) | lowest - highest | headrace is | tokens/s | in the kernel | faults per step | "
    "peak MB | loss after {tokens:,} tokens |"
)


def main() -> None:
    args = parse()
    contenders = [one for one in CONTENDERS if one.name in args.only and (args.rivals or not one.environment)]
    dataset = prepared(args.dataset, args.work)
    spec = spec_for(dataset, args.work, size=args.size, shape=args.shape, warm=args.warm, steps=args.steps, threads=1)
    described = {one.name: run(one, "describe", args.rivals, spec) for one in contenders}
    check(args, contenders, spec)
    if args.check:
        return
    runs: Runs = defaultdict(list)
    for number in range(args.rounds):
        for threads in args.threads:
            for one in contenders:
                runs[threads, one.name].append(measured(args, number, one, {**spec, "threads": threads}))
    result = summary(args, spec, described, runs)
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, nargs="?", help="a prepared dataset with a val split")
    parser.add_argument("--rivals", type=Path, help="the environment that bench/rivals/setup.sh made")
    parser.add_argument("--work", type=Path, default=Path("bench/work"), help="for weights and flat tokens; kept")
    parser.add_argument("--size", default="micro")
    parser.add_argument("--shape", default="4x512", help="rows x tokens of a batch")
    parser.add_argument("--warm", type=int, default=5, help="steps before the clock starts")
    parser.add_argument("--steps", type=int, default=30, help="steps that count")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[one.name for one in CONTENDERS], help="contenders to run")
    parser.add_argument("--check", action="store_true", help="compare the models, train nothing")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser.parse_args()


def check(args: argparse.Namespace, contenders: list[Contender], spec: dict[str, Any]) -> None:
    """The same number of parameters and the same loss before the first step."""
    found = {one.name: run(one, "check", args.rivals, spec) for one in contenders}
    for name, one in found.items():
        print(f"{name}: {one['parameters']:,} parameters, first loss {one['first_loss']:.5f}", file=sys.stderr)
    first = next(iter(found.values()))
    for name, one in found.items():
        if one["parameters"] != first["parameters"] or abs(one["first_loss"] - first["first_loss"]) > SAME:
            sys.exit(f"{name} has not the same model: {one} is not {first}")


def measured(args: argparse.Namespace, number: int, one: Contender, spec: dict[str, Any]) -> dict[str, Any]:
    outcome = run(one, "measure", args.rivals, spec)
    rate, loss = outcome["tokens_per_cpu_s"], outcome["loss"]
    told = f"round {number + 1}: {spec['threads']} threads, {one.name}: {rate:.0f} tokens per CPU-s, loss {loss:.3f}"
    print(told, file=sys.stderr, flush=True)
    return outcome


def summary(
    args: argparse.Namespace, spec: dict[str, Any], described: dict[str, dict[str, Any]], runs: Runs
) -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {len(psutil_cores())} cores",
        "load_average": os.getloadavg(),
        "size": args.size,
        "shape": args.shape,
        "warm": args.warm,
        "steps": args.steps,
        "rounds": args.rounds,
        "tokens": (args.warm + args.steps) * spec["rows"] * spec["length"],
        "rows": [
            {
                "threads": threads,
                "contender": name,
                **described[name],
                "parameters": found[0]["parameters"],
                **{key: round(statistics.median(one[key] for one in found), 4) for key in MEDIANS},
                **{f"all_{key}": [round(one[key], 4) for one in found] for key in MEDIANS},
            }
            for (threads, name), found in runs.items()
        ],
    }


def table(result: dict[str, Any]) -> str:
    lines = []
    for threads in dict.fromkeys(row["threads"] for row in result["rows"]):
        rows = sorted((r for r in result["rows"] if r["threads"] == threads), key=lambda r: -r["tokens_per_cpu_s"])
        ours = next((r["tokens_per_cpu_s"] for r in rows if r["contender"] == OURS), None)
        title = (
            f"{result['size']}, {rows[0]['parameters'] / 1e6:.1f} million parameters, batches of {result['shape']}, "
            f"fp32, {threads} thread{'s' * (threads > 1)}, {result['rounds']} rounds of {result['steps']} steps after "
            f"{result['warm']}"
        )
        lines += [
            title,
            "",
            HEADER.format(tokens=result["tokens"]),
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
            *(line(r, ours) for r in rows),
            "",
        ]
    return "\n".join(lines)


def line(r: dict[str, Any], ours: float | None) -> str:
    rates = r["all_tokens_per_cpu_s"]
    who = r["contender"] if r["contender"] == OURS else f"{r['contender']} ({', '.join(r['versions'])})"
    ratio = f"{ours / r['tokens_per_cpu_s']:.3f}x" if ours and r["contender"] != OURS else ""
    return (
        f"| {who} | {r['tokens_per_cpu_s']:,.0f} | {min(rates):,.0f} - {max(rates):,.0f} | {ratio} | "
        f"{r['tokens_per_s']:,.0f} | {r['system_share']:.1%} | {r['faults_per_step']:,.0f} | {r['peak_mb']:,.0f} | "
        f"{r['loss']:.3f} |"
    )


if __name__ == "__main__":
    main()
