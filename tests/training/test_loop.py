"""The loop learns, never waits inside a step, and goes on exactly where it was."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dataset import EOS, write_dataset
from torch import Tensor

from conftest_training import count_syncs_in_steps
from headrace import Loader, TrainConfig, Trainer, build_model
from headrace.errors import Interrupted, TrainingFailed
from headrace.training import Checkpoints

STEPS = 6


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arithmetic runs modulo 97 with a step of their own: a model has to look back to know the next token."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("runs")
    documents = [
        [*((start + stride * np.arange(40)) % 97).tolist(), EOS]
        for start, stride in zip(rng.integers(0, 97, 600), rng.integers(1, 5, 600), strict=True)
    ]
    write_dataset(folder / "data", [documents[:300], documents[300:]])
    return folder / "data"


def small_model(**options: Any) -> Any:
    shape = {"width": 32, "layers": 2, "heads": 2, "ffn": 64, "context": 64, **options}
    return build_model("transformer", "nano", vocab_size=259, seed=1, **shape)


def open_trainer(data: Path, out: Path, model: Any = None, **settings: Any) -> Trainer:
    options = {"steps": STEPS, "out": out, "log_every": 1, "checkpoint_every": 1, "lr": 3e-3, "warmup": 1, **settings}
    shape = {"seq_len": 32, "batch_size": 4, "holdout": 0.05}
    return Trainer(
        model or small_model(),
        Loader(data, **shape),
        TrainConfig(**options),
        val_loader=Loader(data, split="val", **shape),
        record=False,
    )


def losses_of(trainer: Trainer) -> dict[int, float]:
    """Loss by step, filled while the trainer runs."""
    found: dict[int, float] = {}

    def listen(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            first = event["step"] - event["steps"] + 1
            found.update({first + i: loss for i, loss in enumerate(event["losses"])})

    trainer.listen(listen)
    return found


def stop_after(trainer: Trainer, step: int) -> None:
    """As Ctrl-C in that step would."""
    whole_step = trainer._one_step

    def one_step(batches: Any) -> None:
        whole_step(batches)
        if trainer.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    trainer._one_step = one_step  # type: ignore[method-assign]


def test_a_run_begins_at_chance_and_learns(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, steps=250, log_every=10, checkpoint_every=1000, eval_every=50)
    losses = losses_of(trainer)
    events: list[dict[str, Any]] = []
    trainer.listen(lambda event: events.append(event) if event["kind"] == "eval" else None)
    result = trainer.run()
    assert losses[1] == pytest.approx(math.log(259), abs=0.3)
    assert result.val_loss is not None
    assert result.val_loss < 1.5  # which of 97 tokens follows cannot be known without looking two back: 1.4 nats
    assert events[-1]["accuracy"] > 0.5
    assert len(losses) == 250


@pytest.mark.parametrize("settings", [{}, {"gradient_accumulation": 2, "optimizer": "muon"}], ids=["plain", "muon"])
def test_a_run_stopped_at_any_step_gives_the_same_losses(data: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    whole = open_trainer(data, tmp_path / "whole", checkpoint_every=100, **settings)
    expected = losses_of(whole)
    whole.run()
    for step in range(1, STEPS):
        out = tmp_path / f"stopped-{step}"
        first = open_trainer(data, out, checkpoint_every=100, **settings)
        seen = losses_of(first)
        stop_after(first, step)
        with pytest.raises(Interrupted, match=f"after step {step}; everything is saved"):
            first.run()
        second = open_trainer(data, out, small_model(), **settings)
        seen.update(losses_of(second))
        rest = losses_of(second)
        second.run()
        assert {**seen, **rest} == expected
    last = [parameter.detach().clone() for parameter in whole.model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(last, second.model.parameters(), strict=True))


def test_a_damaged_newest_checkpoint_falls_back_and_says_so(data: Path, tmp_path: Path) -> None:
    whole = open_trainer(data, tmp_path)
    expected = losses_of(whole)
    whole.run()
    newest = max((tmp_path / "checkpoints").glob("step-*")) / "model.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 4
    newest.write_bytes(content)
    again = open_trainer(data, tmp_path)
    messages: list[str] = []
    again.listen(lambda event: messages.append(event["text"]) if event["kind"] == "message" else None)
    seen = losses_of(again)
    again.run()
    assert any("is damaged" in text and "Going back" in text for text in messages)
    assert seen == {STEPS: expected[STEPS]}


@pytest.mark.parametrize(
    "settings",
    [{}, {"gradient_accumulation": 3}, {"optimizer": "muon"}, {"precision": "bf16"}],
    ids=["plain", "accumulated", "muon", "bf16"],
)
def test_nothing_inside_a_step_asks_for_a_number(data: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    trainer = open_trainer(data, tmp_path, log_every=100, **settings)
    counted = count_syncs_in_steps(trainer)
    trainer.run()
    assert counted.found == []
    with counted:
        torch.ones(1).item()
    assert counted.found == ["_local_scalar_dense"], "the counter sees what it should see"


class BadAt(torch.nn.Module):
    """A model whose loss is no number at one step."""

    def __init__(self, model: Any, step: int) -> None:
        super().__init__()
        self.model, self.step, self.calls = model, step, 0

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        self.calls += self.training
        loss: Tensor = self.model(tokens, targets)
        return loss * math.nan if self.calls == self.step and self.training else loss


def test_a_loss_that_is_no_number_stops_the_run_by_name(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, BadAt(small_model(), 3), gradient_accumulation=1)
    with pytest.raises(TrainingFailed, match=r"loss of step 3 is nan \(learning rate .*loader batch 2;"):
        trainer.run()
    assert all(torch.isfinite(parameter).all() for parameter in trainer.model.parameters())


def test_or_the_step_is_left_out(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, BadAt(small_model(), 3), nonfinite="skip")
    losses = losses_of(trainer)
    trainer.run()
    assert [step for step, loss in losses.items() if not math.isfinite(loss)] == [3]
    assert all(torch.isfinite(parameter).all() for parameter in trainer.model.parameters())


def test_a_gradient_that_is_no_number_counts_too(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, lr=1e30, clip=0.0, steps=4)
    with pytest.raises(TrainingFailed, match=r"gradient of step 2 has a norm of (inf|nan)|loss of step 2 is"):
        trainer.run()


def test_a_run_records_itself_and_can_be_opened_again(data: Path, tmp_path: Path) -> None:
    model = small_model()
    config = TrainConfig(steps=2, out=tmp_path, log_every=1, tensorboard=False)
    Trainer(model, Loader(data, seq_len=32, batch_size=4), config).run()
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert kinds[0] == "run"
    assert kinds[-1] == "end"
    assert {"step", "checkpoint"} <= set(kinds)
    told = Checkpoints(tmp_path / "checkpoints").list()[-1].model
    options = {"context": told["context"], **told["options"]}
    again = build_model(told["name"], told["size"], vocab_size=told["vocab_size"], **options)
    found = Checkpoints(tmp_path / "checkpoints").latest()
    assert found is not None
    again.load_state_dict(found.model_state)
    assert torch.equal(again.embedding.weight, model.embedding.weight)


class NoMemory(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def test_out_of_memory_says_what_to_lower(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingFailed, match="--batch-size 2 --gradient-accumulation 2") as caught:
        open_trainer(data, tmp_path, NoMemory()).run()
    assert "--checkpoint-activations" in str(caught.value)
    assert "--use-8bit-optim" in str(caught.value)


def test_every_second_has_a_name(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, log_every=2)
    events: list[dict[str, Any]] = []
    trainer.listen(events.append)
    trainer.run()
    steps = [event for event in events if event["kind"] == "step"]
    assert [event["step"] for event in steps] == [2, 4, 6]
    for event in steps:
        assert sum(event["spans"].values()) == pytest.approx(event["seconds"], rel=1e-6)
        assert event["spans"]["forward"] > 0
        assert event["spans"]["backward"] > 0
        assert event["mfu"] > 0
    assert [event["step"] for event in events if event["kind"] == "checkpoint"] == list(range(1, STEPS + 1))


def test_the_best_checkpoint_is_kept_beside_the_last(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, keep_last=2, eval_every=1, lr=0.5)  # so high that it gets worse
    values: dict[int, float] = {}
    trainer.listen(lambda event: values.update({event["step"]: event["val_loss"]}) if event["kind"] == "eval" else None)
    trainer.run()
    best = min(values, key=lambda step: values[step])
    kept = [manifest.step for manifest in Checkpoints(tmp_path / "checkpoints").list()]
    assert kept == sorted({best, STEPS - 1, STEPS})
