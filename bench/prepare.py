"""Preparing data, side by side: headrace and the ways people do it now. See bench/README.md.

    python bench/prepare.py --corpus big.jsonl --megabytes 500 --rivals VENV --tokenizer bpe=tokenizer.json

Every contender runs as a whole process, rounds are interleaved, and medians are reported. The slow rivals get
--slow-megabytes of the same documents, and their rate is compared with headrace's on the whole.
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

from contenders import RIVALS, Outcome, run_headrace, run_rival
from corpus import KINDS, make_corpus, text_bytes

FAST_RIVAL = "d gigatoken+megatron"


def main() -> None:
    args = parse()
    small = make_corpus(args.work / f"corpus-{args.slow_megabytes:g}", args.slow_megabytes, args.corpus)
    large = make_corpus(args.work / f"corpus-{args.megabytes:g}", args.megabytes, args.corpus)
    sizes = {"small": text_bytes(small["jsonl"]) / 1e6, "large": text_bytes(large["jsonl"]) / 1e6}
    rows: dict[tuple[str, ...], list[Outcome]] = defaultdict(list)
    compile_first(args, small)
    for number in range(args.rounds):
        for name, path in args.tokenizer:
            run_round(args, number, name, path, small, large, rows)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {len(psutil_cores())} cores",
        "text_mb": sizes,
        "rows": [row(key, outcomes, sizes) for key, outcomes in rows.items()],
    }
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="JSONL, Parquet, text files or folders")
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--slow-megabytes", type=float, default=50)
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--rivals", type=Path, help="the environment that bench/rivals/setup.sh made")
    parser.add_argument("--only", nargs="*", default=list(RIVALS), help="rivals to run")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenizer", action="append", type=named, help="NAME=FILE; may be given again")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    args.tokenizer = args.tokenizer or [("headrace-32k", "headrace-32k")]
    return args


def compile_first(args: argparse.Namespace, small: dict[str, list[Path]]) -> None:
    """One run that is not counted, so that Python keeps the bytecode of all modules, as it does on a user's machine.

    With PYTHONDONTWRITEBYTECODE set, a package that was installed without bytecode is compiled anew at every start:
    0.2 s for each process of headrace, and nothing for rivals whose installer had compiled them.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for kind in args.kinds:
        note(-1, f"headrace {kind}, not counted")
        run_headrace(small[kind], args.tokenizer[0][1], args.work / "out", max(args.workers))


def named(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    return name, path or name


def run_round(
    args: argparse.Namespace,
    number: int,
    name: str,
    path: str,
    small: dict[str, list[Path]],
    large: dict[str, list[Path]],
    rows: dict[tuple[str, ...], list[Outcome]],
) -> None:
    out = args.work / "out"
    for kind in args.kinds:
        for workers in args.workers:
            note(number, f"headrace {name} {kind} x{workers}")
            rows[name, kind, str(workers), "headrace", "large"].append(run_headrace(large[kind], path, out, workers))
            for rival in args.only if args.rivals and workers == max(args.workers) else []:
                size = "large" if rival == FAST_RIVAL else "small"
                note(number, f"{rival} {name} {kind} x{workers}")
                files = (large if size == "large" else small)[kind]
                outcome = run_rival(rival, args.rivals / "bin" / "python", files, path, out, workers)
                if outcome is not None:
                    rows[name, kind, str(workers), rival, size].append(outcome)
    for workers in args.workers:
        note(number, f"bare engine {name} x{workers}")
        outcome = bare_engines(large["jsonl"], path, workers)
        rows[name, "memory", str(workers), "bare engine", "large"].append(outcome)


def bare_engines(files: list[Path], tokenizer: str, count: int) -> Outcome:
    """The engine that a run would choose, on texts that are in memory already, in as many processes as workers."""
    script = [sys.executable, str(Path(__file__).parent / "bare_engine.py"), tokenizer, *map(str, files)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    engines = [subprocess.Popen([*script, "--part", f"{part}/{count}"], **pipes) for part in range(count)]
    if count > 1:
        for engine in engines:
            engine.stdout.readline()  # it is ready
    results = [json.loads(text) for text in together(engines)]
    return Outcome(max(r["seconds"] for r in results), 0.0, sum(r["tokens"] for r in results))


def together(engines: list[subprocess.Popen[str]]) -> list[str]:
    for engine in engines:
        assert engine.stdin is not None
        engine.stdin.write("go\n")
        engine.stdin.flush()
    texts = [engine.communicate()[0] for engine in engines]
    for engine in engines:
        if engine.returncode:
            raise subprocess.CalledProcessError(engine.returncode, engine.args)
    return texts


def row(key: tuple[str, ...], outcomes: list[Outcome], sizes: dict[str, float]) -> dict[str, Any]:
    tokenizer, kind, workers, contender, size = key
    rates = [sizes[size] / outcome.seconds for outcome in outcomes]
    return {
        "tokenizer": tokenizer,
        "input": kind,
        "workers": int(workers),
        "contender": contender,
        "text_mb": round(sizes[size]),
        "mb_per_s": round(statistics.median(rates), 2),
        "all_mb_per_s": [round(rate, 2) for rate in rates],
        "peak_mb": round(max(outcome.peak_mb for outcome in outcomes)),
        "tokens": outcomes[0].tokens,
    }


def table(result: dict[str, Any]) -> str:
    lines = [
        "| tokenizer | input | workers | who | text MB | MB/s (median) | headrace is | peak MB per process |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    ours = {
        (r["tokenizer"], r["input"], r["workers"]): r["mb_per_s"]
        for r in result["rows"]
        if r["contender"] == "headrace"
    }
    for r in result["rows"]:
        own = ours.get((r["tokenizer"], "jsonl" if r["input"] == "memory" else r["input"], r["workers"]))
        ratio = f"{own / r['mb_per_s']:.2f}x" if own and r["contender"] != "headrace" else ""
        lines.append(
            f"| {r['tokenizer']} | {r['input']} | {r['workers']} | {r['contender']} | {r['text_mb']} | "
            f"{r['mb_per_s']:.1f} | {ratio} | {r['peak_mb'] or ''} |"
        )
    return "\n".join(lines)


def psutil_cores() -> list[int]:
    import psutil

    return list(psutil.Process().cpu_affinity())


def note(number: int, text: str) -> None:
    print(f"round {number + 1}: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
