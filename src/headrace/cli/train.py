"""headrace train"""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.chart import sparkline
from headrace.cli.output import amount, duration, json_option, out_console, print_facts, print_json, print_next
from headrace.errors import HeadraceError, Interrupted, StoreError, UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from headrace.cli.train_view import TrainView
    from headrace.training import Recipe, Trainer, TrainResult

TEST = {"size": "nano", "steps": 20, "seq_len": 128, "eval_every": 10, "log_every": 5}
BATCH, TEST_BATCH = 16, 4
# What build_model is told anyway, and by whom.
DECIDED = {"name": "--model", "size": "--size", "seed": "--seed", "device": "--device", "dtype": "--mixed-precision",
           "vocab_size": "the tokenizer of the data", "recompute": "--checkpoint-activations"}  # fmt: skip


@click.command(short_help="Train a model on prepared tokens, or on text as it is.")
@click.argument("data", nargs=-1, metavar="[DATA]...")
@click.option("--data", "more_data", multiple=True, metavar="DIR[=WEIGHT]", help="A prepared dataset; may be repeated.")
@click.option("--dataset", help="A catalogue name: data/NAME with --pretokenized, live text without.")
@click.option("--pretokenized", is_flag=True, help="Train on what 'headrace prepare --dataset NAME' made.")
@click.option("--text", multiple=True, metavar="SOURCE", help="Raw text, tokenized while training runs.")
@click.option("-t", "--tokenizer", default="headrace-32k", show_default=True, help="For live text.")
@click.option("-m", "--model", default="transformer", show_default=True, help="Or ten, neurogen, or module:function.")
@click.option("--size", "--config", help="nano micro tiny small medium large xlarge.  [default: micro]")
@click.option(
    "--model-option", "model_options", multiple=True, metavar="NAME=VALUE", help="Of the model, such as layers=8."
)
@click.option("-o", "--out", "--output", type=click.Path(), help="Run folder.  [default: runs/MODEL-SIZE-DATA]")
@click.option(
    "--seq-len",
    "--tokens-per-chunk",
    type=click.IntRange(1),
    help="Tokens per sequence.  [default: the data's chunk size]",
)
@click.option("--batch-size", type=int, help="Sequences per forward pass.  [default: 16, or --max-chunks]")
@click.option(
    "--gradient-accumulation", type=click.IntRange(1), default=1, show_default=True, help="Forward passes per step."
)
@click.option("--steps", "--max-steps", type=int, help="Changes of the weights.")
@click.option("--epochs", type=float, help="Times through the data.  [default: 1, without --steps]")
@click.option("--max-chunks", type=click.IntRange(1), help="Train on so many sequences only.")
@click.option("--lr", "--learning-rate", type=float, default=1e-3, show_default=True)
@click.option(
    "--schedule", type=click.Choice(["cosine", "wsd", "linear", "constant"]), default="cosine", show_default=True
)
@click.option("--warmup", type=int, help="Steps.  [default: a fiftieth of the run]")
@click.option("--optimizer", type=click.Choice(["adamw", "adamw8bit", "muon"]), default="adamw", show_default=True)
@click.option("--use-8bit-optim", is_flag=True, help="The same as --optimizer adamw8bit.")
@click.option("--weight-decay", type=float, default=0.1, show_default=True)
@click.option("--clip", type=float, default=1.0, show_default=True, help="Largest norm of the gradients; 0 for none.")
@click.option("--mixed-precision", "--precision", is_flag=False, flag_value="auto", default="auto", show_default=True,
              type=click.Choice(["auto", "fp32", "bf16", "fp16"]), help="auto: bf16 on a GPU that has it.")  # fmt: skip
@click.option("--compile/--no-compile", default=None, help="torch.compile.  [default: on a GPU]")
@click.option("--checkpoint-activations", is_flag=True, help="Compute activations twice instead of keeping them.")
@click.option("--documents", is_flag=True, help="Attention does not cross document boundaries.")
@click.option("--packing", type=click.Choice(["concat", "best-fit"]), default="concat", show_default=True)
@click.option("--holdout", type=float, default=0.01, show_default=True, help="Share for validation, if data has none.")
@click.option("-j", "--num-workers", "--workers", type=int, help="Threads that tokenize live text.")
@click.option("--device", default="auto", show_default=True)
@click.option("--parallel", type=click.Choice(["auto", "none", "ddp", "fsdp"]), default="auto", show_default=True,
              help="Over the processes of torchrun; auto: ddp there.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--log-every", type=int, help="Steps.  [default: 10]")
@click.option("--eval-every", type=int, help="Steps.  [default: a tenth of the run]")
@click.option("--eval-batches", type=int, default=16, show_default=True)
@click.option("--checkpoint-every", type=int, help="Steps.  [default: with every evaluation]")
@click.option("--keep-last", type=int, default=3, show_default=True, help="Checkpoints to keep, beside the best.")
@click.option("--nonfinite", type=click.Choice(["stop", "skip"]), default="stop", show_default=True,
              help="What to do when a loss is no number.")  # fmt: skip
@click.option("--tensorboard/--no-tensorboard", default=True, help="Write TensorBoard files.  [default: yes]")
@click.option("--wandb", metavar="PROJECT", help="Also log to Weights & Biases.")
@click.option("--test", is_flag=True, help="A small model for a few steps, to see that everything works.")
@click.option("-v", "--verbose", is_flag=True, help="Say more; with live text, one line per tokenized group.")
@click.option("--force", is_flag=True, help="Start the run over; deletes only what a run writes.")
@json_option
def train(as_json: bool, force: bool, parallel: str, **options: Any) -> None:
    """Train on DATA, folders that 'headrace prepare' made, mixed by weight: DIR=0.8 DIR=0.2.

    \b
    headrace train data/python-stdlib                    a small transformer
    headrace train data/web=0.8 data/code=0.2 --size small --compile
    headrace train --text corpus/*.jsonl --steps 500     no prepare step

    Stop it at any moment; the same command goes on where it was.
    """
    from headrace.cli.train_view import TrainView
    from headrace.training import build_trainer
    from headrace.training.parallel import start_group

    with one_voice(), start_group(parallel, options["device"]) as group:
        recipe = recipe_of({**options, "device": group.device(options["device"])})
        view = TrainView(quiet=as_json or not group.main)
        trainer = build_trainer(recipe, force=force, report=view.say, group=group)
        trainer.listen(view)
        with view:
            result = trainer.run()
        if as_json and group.main:
            print_json(summary(result, trainer))
        elif group.main:
            show_result(result, trainer, view)


@contextmanager
def one_voice() -> Iterator[None]:
    """Of several ranks the first speaks for all; another one says only what is its own, with its name."""
    rank = int(os.environ.get("RANK", "0"))
    try:
        yield
    except HeadraceError as error:
        from headrace.training.parallel import FailedOnMain

        if rank and isinstance(error, (FailedOnMain, Interrupted)):
            sys.exit(error.exit_code)
        if rank:
            error.args = (f"rank {rank}: {error}",)
        raise


def recipe_of(options: dict[str, Any]) -> Recipe:
    """The run that these options describe."""
    from headrace.training import Recipe, default_precision, pick_device

    if options["test"]:
        options = small(options)
    data, name = data_of(options)
    size = options["size"] or "micro"
    device = pick_device(options["device"])
    precision = options["mixed_precision"]
    settings = {
        "out": options["out"] or str(Path("runs") / f"{short_name(options['model'])}-{size}-{name}"),
        "optimizer": "adamw8bit" if options["use_8bit_optim"] else options["optimizer"],
        "precision": default_precision(device) if precision == "auto" else precision,
        "compile": "auto" if options["compile"] is None else options["compile"],
        "log_every": 10 if options["log_every"] is None else options["log_every"],
    }
    same = (
        "gradient_accumulation lr schedule warmup weight_decay clip device eval_every eval_batches checkpoint_every "
        "keep_last nonfinite tensorboard wandb checkpoint_activations"
    )
    return Recipe(
        data=data,
        model=options["model"],
        size=size,
        model_options=model_options(options["model_options"]),
        seq_len=options["seq_len"],
        batch_size=batch_size(options),
        steps=options["steps"],
        epochs=options["epochs"],
        max_chunks=options["max_chunks"],
        documents=options["documents"],
        packing=options["packing"],
        holdout=options["holdout"],
        seed=options["seed"],
        train={**settings, **{key: options[key] for key in same.split()}},
    )


def model_options(pairs: Sequence[str]) -> dict[str, Any]:
    """layers=8 -> {"layers": 8}; a value that is no JSON is a word."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise UsageError(f"--model-option {pair}: write NAME=VALUE, layers=8 for example.")
        if name in DECIDED:
            raise UsageError(f"--model-option {pair}: {DECIDED[name]} decides that. Leave the option out.")
        if name in found:
            raise UsageError(f"--model-option {name} is given twice. Give it once.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def small(options: dict[str, Any]) -> dict[str, Any]:
    """What --test decides where nobody else did: a run for any machine, in seconds."""
    usual = {**TEST, "steps": TEST["steps"] if options["max_chunks"] is None else None}
    if (options["seq_len"] or 0) > 256:  # the context of nano
        usual["size"] = "micro"
    return {**options, **{name: value for name, value in usual.items() if options[name] is None}}


def batch_size(options: dict[str, Any]) -> int:
    """As asked for; else the usual, or less where --max-chunks would not fill one step of that."""
    if options["batch_size"] is not None:
        return int(options["batch_size"])
    usual = TEST_BATCH if options["test"] else BATCH
    if options["max_chunks"] is None:
        return usual
    most: int = options["max_chunks"] // options["gradient_accumulation"]
    return max(1, min(usual, most))


def short_name(model: str) -> str:
    """path/to/mine.py:build -> mine"""
    place = model.rpartition(":")[0] or model
    return Path(place).stem if place.endswith(".py") else place


def data_of(options: dict[str, Any]) -> tuple[Any, str]:
    """What to train on, and a short name for it."""
    folders = [*options["data"], *options["more_data"]]
    if options["dataset"] and options["pretokenized"]:
        folders.append(pretokenized(options["dataset"]))
    if options["text"] or (options["dataset"] and not options["pretokenized"]):
        return live_text(options, folders)
    if not folders:
        raise UsageError(
            "No DATA given. Prepare some and name its folder: headrace prepare python-stdlib && "
            "headrace train data/python-stdlib. Or train on text as it is: headrace train --text FILE"
        )
    mix = dict(weighted(folder) for folder in folders)
    if len(mix) < len(folders):
        raise UsageError("A dataset is named twice. Name it once, with the sum of its weights.")
    for folder in mix:
        need_dataset(folder, options["dataset"])
    name = Path(next(iter(mix))).absolute().name
    if all(weight is None for weight in mix.values()):
        return list(mix), name
    missing = [folder for folder, weight in mix.items() if weight is None]
    if missing:
        raise UsageError(f"{missing[0]} has no weight and others have one. Give every dataset one: {missing[0]}=0.5")
    return mix, name


def weighted(text: str) -> tuple[str, float | None]:
    """DIR=0.8 -> (DIR, 0.8); a folder whose name has a '=' is meant as it is written."""
    folder, sign, weight = text.rpartition("=")
    if not sign or Path(text).exists():
        return text, None
    try:
        return folder, float(weight)
    except ValueError:
        raise UsageError(f"{text!r}: {weight!r} is no weight. Write DIR=0.8, or just DIR.") from None


def pretokenized(name: str) -> str:
    from headrace.cli.prepare import default_folder

    return name if (Path(name) / "metadata.json").exists() else default_folder(name)


def need_dataset(folder: str, dataset: str | None) -> None:
    """A folder without a dataset is refused with the command that makes one."""
    if (Path(folder) / "metadata.json").exists() or (Path(folder) / ".headrace").exists():
        return  # a dataset that is half made says so itself when it is opened
    source = dataset if dataset is not None and pretokenized(dataset) == folder else known_source(Path(folder).name)
    raise StoreError(f"No chunks found in {folder}. Make them with: headrace prepare {source} --out {folder}")


def known_source(name: str) -> str:
    from headrace.sources.catalogue import NAMES, find

    return name if name in NAMES or find(name) else "SOURCE"


def live_text(options: dict[str, Any], folders: list[str]) -> tuple[Any, str]:
    from headrace.cli.prepare import default_folder
    from headrace.loading.live import LiveText

    if folders:
        raise UsageError(f"{folders[0]} is prepared and --text is not: train on one kind, or prepare the text too.")
    sources = [*options["text"], *([options["dataset"]] if options["dataset"] else [])]
    if options["epochs"] is not None and options["steps"] is None and options["max_chunks"] is None:
        raise UsageError(
            f"--epochs {options['epochs']:g}: nobody knows how long live text is before it is read. Give --steps, "
            f"or prepare it once: headrace prepare {sources[0]} --out {default_folder(sources[0])}"
        )
    live = LiveText(sources, tokenizer=options["tokenizer"], threads=options["num_workers"], verbose=options["verbose"])
    return live, Path(default_folder(sources[0])).name


def summary(result: TrainResult, trainer: Trainer) -> dict[str, Any]:
    return {
        "out": str(result.out),
        "step": result.step,
        "tokens": result.tokens,
        "loss": result.loss,
        "val_loss": result.val_loss,
        "seconds": round(trainer.seconds, 3),
        "tokens_per_second": round(result.tokens / trainer.seconds, 1) if trainer.seconds else None,
        "device": str(trainer.device),
    }


def show_result(result: TrainResult, trainer: Trainer, view: TrainView) -> None:
    from rich.text import Text

    console = out_console()
    console.print(Text.assemble(("Trained ", "done"), str(result.out)), soft_wrap=True)
    print_facts(console, [*_rates(result, trainer), *_quality(result, view)])
    print_next(console, "Let it write", f"headrace sample {shlex.quote(str(result.out))} --prompt 'def '")


def _rates(result: TrainResult, trainer: Trainer) -> list[tuple[str, str | Text]]:
    rate = result.tokens / trainer.seconds if trainer.seconds else 0.0
    return [
        ("steps", f"{result.step:,}, {amount(result.tokens)} tokens in {duration(trainer.seconds)}"),
        ("tokens/s", f"{rate:,.0f}"),
    ]


def _quality(result: TrainResult, view: TrainView) -> list[tuple[str, str | Text]]:
    """With the course that they took, as far as this process saw it."""
    from rich.text import Text

    history = view.status.history
    rows: list[tuple[str, str | Text]] = []
    if math.isfinite(result.loss):  # there is none if every step was made before
        course = sparkline(history.steps["train_loss"])
        rows.append(("loss", Text.assemble((f"{result.loss:.4f}", "loss"), f"  {course}" if course else "")))
    if result.val_loss is not None:
        course = sparkline(history.evals["val_loss"])
        perplexity = f", perplexity {math.exp(result.val_loss):,.1f}"
        words = Text.assemble((f"{result.val_loss:.4f}", "mark"), perplexity, f"  {course}" if course else "")
        rows.append(("val", words))
    return rows
