"""Every model trains, goes on where it was, writes text and is exported, as a user types it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from conftest_cli import Headrace
from conftest_pipeline import make_texts, write_jsonl
from headrace import prepare
from headrace.errors import Interrupted
from headrace.models import MODELS
from headrace.training import Recipe, Trainer, build_trainer, load_run

every_model = pytest.mark.parametrize("name", list(MODELS))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    write_jsonl(folder / "tales.jsonl", make_texts(100))
    prepare(folder / "tales.jsonl", out=folder / "data", tokenizer="bytes", chunk_size=64)
    return folder / "data"


def open_trainer(name: str, data: Path, out: Path) -> tuple[Trainer, dict[int, float]]:
    settings = {"out": out, "lr": 3e-3, "log_every": 1, "eval_batches": 1, "tensorboard": False}
    recipe = Recipe(data=[str(data)], model=name, size="nano", seq_len=64, batch_size=2, steps=4, train=settings)
    trainer, losses = build_trainer(recipe), dict[int, float]()
    trainer.listen(lambda event: losses.update({event["step"]: event["loss"]}) if event["kind"] == "step" else None)
    return trainer, losses


def stop_after(trainer: Trainer, step: int) -> None:
    """As Ctrl-C in that step would."""
    whole_step = trainer._one_step

    def one_step(batches: Any) -> None:
        whole_step(batches)
        if trainer.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    trainer._one_step = one_step  # type: ignore[method-assign]


@every_model
def test_a_stopped_run_gives_the_same_weights(name: str, data: Path, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        whole, expected = open_trainer(name, data, tmp_path / "whole")
        whole.run()
        first, begun = open_trainer(name, data, tmp_path / "stopped")
        stop_after(first, 2)
        with pytest.raises(Interrupted, match="after step 2; everything is saved"):
            first.run()
        second, rest = open_trainer(name, data, tmp_path / "stopped")
        second.run()
    finally:
        torch.set_num_threads(threads)
    assert {**begun, **rest} == expected
    assert sorted(rest) == [3, 4]
    torch.testing.assert_close(dict(second.model.state_dict()), dict(whole.model.state_dict()), rtol=0, atol=0)


@every_model
def test_trained_sampled_and_exported(name: str, data: Path, tmp_path: Path, headrace_here: Headrace) -> None:
    out = tmp_path / "run"
    words = ("--model", name, "--size", "nano", "--seq-len", 64, "--batch-size", 2, "--eval-batches", 1)
    headrace_here("train", data, *words, "--steps", 2, "--log-every", 1, "--documents", "--no-tensorboard", "-o", out)
    found = json.loads(headrace_here("sample", out, "--prompt", "Document ", "-n", 8, "--json").stdout)
    assert (found["step"], len(found["samples"])) == (2, 1)
    file = tmp_path / "weights.safetensors"
    headrace_here("export", out, "--format", "safetensors", "--checkpoint", "latest", "--out", file)
    saved = load_run(out).model.state_dict()
    torch.testing.assert_close(load_file(file), dict(saved), rtol=0, atol=0)


@every_model
def test_only_the_transformer_is_a_llama(name: str, data: Path, tmp_path: Path, headrace_here: Headrace) -> None:
    out = tmp_path / "run"
    words = ("--model", name, "--size", "nano", "--seq-len", 16, "--batch-size", 1, "--eval-batches", 1)
    headrace_here("train", data, *words, "--steps", 1, "--no-tensorboard", "--checkpoint-activations", "--out", out)
    done = headrace_here("export", out, "--out", tmp_path / "llama", check=0 if name == "transformer" else 2)
    if name == "transformer":
        assert (tmp_path / "llama" / "config.json").exists()
    else:
        assert f"{MODELS[name].__name__} cannot be a Llama. Use --format safetensors." in done.stderr
        assert not (tmp_path / "llama").exists()
