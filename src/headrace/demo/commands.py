"""The commands that the stages stand for: typed by hand, each does what its stage does."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import torch

from headrace.demo import plan
from headrace.demo.folder import DemoFolder
from headrace.demo.plan import DemoConfig
from headrace.training import Recipe, pick_device


def options(**settings: object) -> list[str]:
    """lr=0.1 -> --lr 0.1"""
    return [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def tokenizer_command(folder: DemoFolder) -> list[str]:
    settings = options(vocab_size=plan.VOCABULARY, out=folder.tokenizer)
    return ["headrace", "tokenizer", "train", plan.SOURCE, *settings]


def prepare_command(folder: DemoFolder) -> list[str]:
    settings = options(tokenizer=folder.tokenizer, val_fraction=plan.VAL_FRACTION, out=folder.data)
    return ["headrace", "prepare", plan.SOURCE, *settings, "--force"]


def slow_script(config: DemoConfig, folder: DemoFolder) -> list[str]:
    settings = options(
        tokenizer=folder.tokenizer,
        size=plan.SIZE,
        length=plan.LENGTH,
        rows=plan.ROWS,
        lr=plan.LR,
        warmup=plan.WARMUP,
        seconds=round(config.part("slow"), 2),
        device=pick_device("auto"),
        threads=torch.get_num_threads(),
        out=folder.slow_steps,
    )
    return [sys.executable, str(folder.script), *settings]


def slow_command(config: DemoConfig, folder: DemoFolder) -> list[str]:
    script = slow_script(config, folder)
    return ["headrace", "diagnose", "run", *options(out=folder.slow), "--", "python", *script[1:]]


def recipe_of(folder: DemoFolder, model: str, steps: int) -> Recipe:
    train: dict[str, Any] = {
        "out": str(folder.run(model)),
        "lr": plan.LR,
        "warmup": min(plan.WARMUP, steps // 4),
        "precision": plan.PRECISION,
        "compile": False,  # it would take longer than the demo
        "log_every": plan.LOG_EVERY,
        "eval_every": max(2 * plan.LOG_EVERY, -(-steps // plan.EVALUATIONS)),
        "eval_batches": plan.EVAL_BATCHES,
        "checkpoint_every": steps,  # a stop saves one too, and writing more would only take time
        "tensorboard": False,
    }
    return Recipe(
        data=[str(folder.data)],
        model=model,
        size=plan.SIZE,
        seq_len=plan.LENGTH,
        batch_size=plan.ROWS,
        steps=steps,
        train=train,
    )


def train_command(recipe: Recipe) -> list[str]:
    assert isinstance(recipe.data, list)
    shape = {name: getattr(recipe, name) for name in ("model", "size", "seq_len", "batch_size", "steps")}
    named = ("lr", "warmup", "precision", "log_every", "eval_every", "eval_batches", "checkpoint_every", "out")
    settings = options(**shape, **{name: recipe.train[name] for name in named})
    return ["headrace", "train", str(recipe.data[0]), *settings, "--no-compile", "--no-tensorboard", "--force"]


def sample_command(folder: DemoFolder, model: str, prompt: str) -> list[str]:
    return ["headrace", "sample", str(folder.run(model)), *options(prompt=prompt, **plan.SAMPLING)]


def compare_command(folder: DemoFolder) -> list[str]:
    return ["headrace", "diagnose", "compare", str(folder.slow_report), str(folder.diagnosis(plan.MODELS[0]))]


NEXT = (
    ["headrace", "diagnose", "run", "--", "python", "your_training.py"],
    ["headrace", "prepare", "your-texts/", "--out", "data/yours"],
    ["headrace", "train", "data/yours", "--out", "runs/yours"],
)


def shown(command: list[str]) -> str:
    return shlex.join(command)
