"""How well the models learn: validation loss after equal tokens, at about equal parameters, over several seeds.

    headrace prepare CORPUS --out data/web --val-fraction 0.02
    python bench/models_quality.py data/web data/code --steps 3000 --seeds 3 --work WORK --out results/quality
    python bench/models_quality.py data/web data/code --steps 3000 --seeds 3 --work WORK --report    # as far as it is

Every run is a real `headrace train` on one thread, --jobs of them at a time. Seed 0 of everything comes first, so that
half a table is of use. Stop it at any moment: the same command goes on, inside the run it was in too. All models see
the same batches in the same order for a seed, and are validated on the same batches, on which a table of pairs is the
baseline (bench/bigram.py). A run's folder is named by all that decides its result, so changed settings begin anew.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from bigram import Bigram, seen_tokens, train_tokens, tune, validation
from models_quality_runs import Run, run_all
from models_quality_table import quality_table

from headrace.models import MODELS
from headrace.storage import VAL, read_metadata


class Variant(NamedTuple):
    model: str
    options: dict[str, Any]
    lr: float = 2e-3
    optimizer: str = "adamw"


# `ten` as the guides describe it: a number in each eigenstate, fixed eigenvalues, no convolution, no gate. It has more
# states and a wider feed-forward layer, so that its parameters are as many.
GUIDES: dict[str, Any] = {
    "published": True, "selective": False, "taps": 0, "gated": False, "states": 64, "ffn": 936,
}  # fmt: skip
VARIANTS = {
    "transformer": Variant("transformer", {}),
    "ten": Variant("ten", {}),
    "ten-guides": Variant("ten", GUIDES),
    "neurogen": Variant("neurogen", {}, 3e-3, "muon"),  # with AdamW the modules in the middle fall almost silent
}
SAME = ("size", "seq_len", "batch_size", "steps", "precision", "eval_batches", "eval_every")


def main() -> None:
    args = parse()
    args.work.mkdir(parents=True, exist_ok=True)
    runs = [
        Run(dataset=str(dataset), variant=name, model=VARIANTS[name].model, options=VARIANTS[name].options,
            optimizer=VARIANTS[name].optimizer, lr=args.rates.get(name, VARIANTS[name].lr), seed=seed,
            **{key: getattr(args, key) for key in SAME})
        for seed in range(args.seeds)
        for dataset in args.datasets
        for name in args.models
    ]  # fmt: skip
    if not args.report:
        run_all(runs, args.work, jobs=args.jobs, keep=args.keep_checkpoints)
    found = [(run, run.record(args.work)) for run in runs]
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", "bench/models_quality.py", *sys.argv[1:]]),
        "cores": os.cpu_count(),
        "settings": {key: getattr(args, key) for key in (*SAME, "seeds")},
        "variants": {name: {**VARIANTS[name]._asdict(), "lr": args.rates.get(name, VARIANTS[name].lr)}
                     for name in args.models},
        "bigram": {dataset.name: bigram_losses(dataset, args) for dataset in args.datasets},
        "wanted": len(runs),
        "runs": [{"dataset": Path(run.dataset).name, "model": run.variant, "seed": run.seed, **told["result"]}
                 for run, told in found if "result" in told],
        "failed": {run.title: told["failed"] for run, told in found if "failed" in told},
    }  # fmt: skip
    text = quality_table(result)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.with_name(args.out.name + ".json").write_text(json.dumps(result, indent=1) + "\n")
        args.out.with_name(args.out.name + ".md").write_text(text + "\n")
    sys.exit(1 if result["failed"] else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+", help="prepared datasets with a val split")
    known = [name for name, variant in VARIANTS.items() if variant.model in MODELS]
    parser.add_argument("--models", nargs="+", default=known, choices=list(VARIANTS), metavar="NAME",
                        help=f"of {', '.join(VARIANTS)}")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3, help="so many, from 0 on")
    parser.add_argument("--size", default="micro")
    parser.add_argument("--seq-len", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--lr", action="append", default=[], metavar="[NAME=]VALUE", help="for all, or for one")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--eval-batches", type=int, default=128, help="of --batch-size rows")
    parser.add_argument("--eval-every", type=int, help="steps; the default is a fifth of the run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one thread each")
    parser.add_argument("--work", type=Path, default=Path("bench/work/quality"), help="for the runs; kept")
    parser.add_argument("--keep-checkpoints", action="store_true", help="of finished runs: 0.3 GB each for micro")
    parser.add_argument("--report", action="store_true", help="train nothing; the table of what is there")
    parser.add_argument("--out", type=Path, metavar="PREFIX", help="write PREFIX.json and PREFIX.md")
    args = parser.parse_args()
    args.eval_every = args.eval_every or max(1, args.steps // 5)
    args.rates = rates(parser, args.lr, args.models)
    check_datasets(parser, args.datasets)
    return args


def rates(parser: argparse.ArgumentParser, given: list[str], models: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        if name and name not in VARIANTS:
            parser.error(f"--lr {text}: there is no {name}, only {', '.join(VARIANTS)}")
        try:
            found |= dict.fromkeys([name] if name else models, float(value))
        except ValueError:
            parser.error(f"--lr {text}: {value!r} is no number")
    return found


def check_datasets(parser: argparse.ArgumentParser, datasets: list[Path]) -> None:
    if len({dataset.name for dataset in datasets}) < len(datasets):
        parser.error("two datasets have one folder name, which the table could not tell apart")
    for dataset in datasets:
        if not read_metadata(dataset).of_split(VAL):
            parser.error(f"{dataset} has no val split, so the table of pairs would have seen the validation chunks. "
                         f"Prepare it with --val-fraction 0.02.")  # fmt: skip


def bigram_losses(dataset: Path, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Of a table of pairs on the very batches that the runs are validated on; kept beside them.

    Once counted over what a run reads, and once over the whole train split.
    """
    asked = argparse.Namespace(
        dataset=dataset, seq_len=args.seq_len, batch_size=args.batch_size, eval_batches=args.eval_batches
    )
    metadata = read_metadata(dataset)
    shape = f"{args.seq_len}x{args.batch_size}x{args.eval_batches}"
    name = f"{dataset.name}-{metadata.total_tokens}-{shape}-{args.steps}"
    kept = args.work / f"bigram-{name}.json"
    if not kept.exists():
        print(f"counting pairs of {dataset.name}", file=sys.stderr, flush=True)
        counted = {"equal": seen_tokens(asked, args.steps), "all": train_tokens(dataset)}
        found = {
            how: {"tokens": len(tokens), "loss": Bigram(tokens, metadata.vocab_size).loss(*validation(asked), strength)}
            for how, tokens in counted.items()
            for strength in [tune(tokens, metadata.vocab_size)]
        }
        kept.write_text(json.dumps(found))
    return json.loads(kept.read_text())  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
