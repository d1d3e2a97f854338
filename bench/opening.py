"""Opening a dataset: time and memory must not grow with it, nor descriptors with its shards.

    python bench/opening.py --work WORK --rounds 5 --out opening.json

Small (4 million tokens), 200 million tokens, and a sparse one of 20 billion, 8 shards each, one of 10,000 shards, and
the manifest of one of 100,000 (7.5 trillion tokens), which is opened and read in one place.
They are made once in WORK: about 450 MB, and 20,000 small files. Every measurement is a fresh process with imports
done and warm files; rounds are interleaved and medians reported. A batch is 32 x 2,048 int64.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from loading_data import warm
from opening_data import dense, listed, sparse
from prepare import psutil_cores

HERE = Path(__file__).parent
SHARDS = 8
SMALL, WARM, SPARSE, MANY = "4 million", "200 million", "20 billion, sparse", "10,000 shards"
LISTED = "100,000 shards, one there"
TARGETS = {
    "first_batch_of_200_million_ms": 50,
    "open_10_000_shards_ms": 1000,
    "open_100_000_shards_ms": 1000,
    "descriptors": 1024,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    folders = {
        SMALL: dense(args.work / "opening-small", 4_000_000, SHARDS),
        WARM: dense(args.work / "opening-200m", 200_000_000, SHARDS),
        SPARSE: sparse(args.work / "opening-sparse", 20_000_000_000, SHARDS),
        MANY: dense(args.work / "opening-shards", 40_000_000, 10_000),
        LISTED: listed(
            args.work / "opening-listed", 100_000, 36_621 * 2048
        ),  # whole chunks: the one in the middle lies in one shard
    }
    for name in (SMALL, WARM, MANY):
        warm([folders[name]])
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {len(psutil_cores())} cores",
        "rounds": args.rounds,
        "rows": measure(folders, args.rounds),
    }
    result["targets"] = targets(result["rows"])
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["targets"], indent=1))
    print(table(result["rows"]))


def measure(folders: dict[str, Path], rounds: int) -> list[dict[str, Any]]:
    runs: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    wanted = [(what, name) for what in ("store", "loader") for name in folders if (what, name) != ("loader", LISTED)]
    wanted.append(("descriptors", MANY))
    for _ in range(rounds):
        for what, name in wanted:
            runs[what, name].append(probe(what, folders[name]))
    return [
        {
            "what": what,
            "dataset": name,
            **{key: round(statistics.median(run[key] for run in found), 2) for key in found[0]},
            "all_first_ms": [round(run["first_ms"], 2) for run in found if "first_ms" in run],
        }
        for (what, name), found in runs.items()
    ]


def probe(what: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, str(HERE / "opening_probe.py"), what, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def targets(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was asked for, what was found, and whether it is kept."""
    found = {(row["what"], row["dataset"]): row for row in rows}
    values = {
        "first_batch_of_200_million_ms": found["loader", WARM]["first_ms"],
        "open_10_000_shards_ms": found["store", MANY]["open_ms"],
        "open_100_000_shards_ms": found["store", LISTED]["open_ms"],
        "descriptors": found["descriptors", MANY]["loader_and_store_descriptors"],
    }
    kept = {
        name: {"limit": TARGETS[name], "found": value, "kept": value < TARGETS[name]} for name, value in values.items()
    }
    for what in ("store", "loader"):
        for key in ("open_ms", "first_ms", "own_growth_mb"):
            small, large = found[what, SMALL][key], found[what, SPARSE][key]
            # The noise of a fresh process on a shared machine: a millisecond, or a quarter of a megabyte.
            allowed = small * 1.2 + (0.25 if key.endswith("mb") else 1.0)
            name = f"{what}_{key}_sparse_against_small"
            kept[name] = {"limit": round(allowed, 2), "found": large, "kept": large <= allowed}
    return kept


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| what | dataset | open ms | to the first chunk or batch ms | RSS grows MB | without files MB | highest MB |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if row["what"] == "descriptors":
            continue
        lines.append(
            f"| {row['what']} | {row['dataset']} | {row['open_ms']:.2f} | {row['first_ms']:.2f} | "
            f"{row['rss_growth_mb']:.1f} | {row['own_growth_mb']:.1f} | {row['highest_mb']:.0f} |"
        )
    return "\n".join([*lines, "", told(next(row for row in rows if row["what"] == "descriptors"))])


def told(many: dict[str, Any]) -> str:
    return (
        f"10,000 shards, 1,024 descriptors allowed: open {many['open_ms']:.0f} ms; 20,000 random chunks "
        f"{many['chunks_ms']:.0f} ms, then {many['descriptors']:.0f} descriptors; a Loader's first batch "
        f"{many['loader_first_ms']:.0f} ms and 625 more {many['loader_batches_ms']:.0f} ms, then "
        f"{many['loader_and_store_descriptors']:.0f} descriptors."
    )


if __name__ == "__main__":
    main()
