"""What a model has to tell of itself travels with the loss: late, averaged, without a wait, and to everyone."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from dataset import EOS, write_dataset
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn

from conftest_events import run_event, step_event
from conftest_training import count_syncs_in_steps
from headrace import Loader, TrainConfig, Trainer
from headrace.cli.train_panels import live_view, plain_line
from headrace.cli.train_status import RunStatus
from headrace.models import LanguageModel, build_model
from headrace.training.history import History
from headrace.training.late import LateReader, column_means

STEPS = 6


@dataclass(frozen=True, kw_only=True)
class TalkerConfig:
    vocab_size: int
    context: int
    width: int
    tied: bool = True


class Talker(LanguageModel):
    """Reports the mean of its tokens and half of it, which no two batches have in common."""

    config_type = TalkerConfig
    sizes = {"nano": {"width": 8, "context": 32}}  # noqa: RUF012

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config)
        self.body = nn.Linear(config.width, config.width)
        self.told: Tensor | None = None
        self.seen: list[float] = []  # what the trainer should hear; asking for it makes the host wait
        self.keep = True

    def hidden(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: Any = None) -> Tensor:
        self.told = tokens.float().mean()
        if self.training and self.keep:
            self.seen.append(float(self.told))
        states: Tensor = self.body(self.embedding(tokens))
        return states

    def new_cache(self, batch: int, length: int) -> dict[str, Tensor]:
        return {}

    def initialise(self, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3, generator=generator)

    def metrics(self) -> dict[str, Tensor]:
        return {} if self.told is None else {"mean_token": self.told, "half": self.told / 2}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    generator = torch.Generator().manual_seed(0)
    documents = [[*torch.randint(97, (40,), generator=generator).tolist(), EOS] for _ in range(200)]
    write_dataset(folder, [documents])
    return folder


def talker() -> Talker:
    model = Talker(TalkerConfig(vocab_size=259, context=32, width=8))
    model.initialise(1)
    return model


def open_trainer(data: Path, out: Path, model: Any = None, *, record: bool = False, **settings: Any) -> Trainer:
    options = {"steps": STEPS, "out": out, "log_every": 2, "lr": 1e-3, "warmup": 1, **settings}
    shape = {"seq_len": 16, "batch_size": 4, "holdout": 0.05}
    val = Loader(data, split="val", **shape)
    return Trainer(model or talker(), Loader(data, **shape), TrainConfig(**options), val_loader=val, record=record)


def steps_of(trainer: Trainer) -> list[dict[str, Any]]:
    """The step events, filled while the trainer runs."""
    found: list[dict[str, Any]] = []
    trainer.listen(lambda event: found.append(event) if event["kind"] == "step" else None)
    return found


def means(values: list[float], size: int) -> list[float]:
    return [sum(values[i : i + size]) / len(values[i : i + size]) for i in range(0, len(values), size)]


# Through the loop


def test_an_interval_has_the_mean_of_its_steps(data: Path, tmp_path: Path) -> None:
    model = talker()
    trainer = open_trainer(data, tmp_path, model, steps=5, eval_every=1)  # evaluation between steps is not counted
    found = steps_of(trainer)
    trainer.run()
    assert len(set(model.seen)) == 5
    assert [event["metrics"]["mean_token"] for event in found] == pytest.approx(means(model.seen, 2))
    assert [event["metrics"]["half"] for event in found] == pytest.approx([v / 2 for v in means(model.seen, 2)])
    assert all(list(event["metrics"]) == ["mean_token", "half"] for event in found)


def test_of_an_accumulated_step_the_last_batch_counts(data: Path, tmp_path: Path) -> None:
    model = talker()
    trainer = open_trainer(data, tmp_path, model, gradient_accumulation=3)
    found = steps_of(trainer)
    trainer.run()
    assert [event["metrics"]["mean_token"] for event in found] == pytest.approx(means(model.seen[2::3], 2))


def test_a_model_that_says_nothing_has_no_metrics(data: Path, tmp_path: Path) -> None:
    quiet = build_model("transformer", "nano", vocab_size=259, width=16, layers=1, heads=2, ffn=16, context=32)
    for name, model in (("quiet", quiet), ("other", nn.Sequential(quiet))):
        if name == "other":
            model.forward = quiet.forward  # no LanguageModel, though its loss is that of one
        trainer = open_trainer(data, tmp_path / name, model, steps=2)
        found = steps_of(trainer)
        trainer.run()
        assert "metrics" not in found[0]


def test_no_step_waits_for_a_metric(data: Path, tmp_path: Path) -> None:
    model = talker()
    model.keep = False
    trainer = open_trainer(data, tmp_path, model, log_every=100)
    counted = count_syncs_in_steps(trainer)
    trainer.run()
    assert counted.found == []
    model.keep = True
    with counted:
        model.train()(torch.zeros(1, 4, dtype=torch.int64))
    assert counted.found == ["_local_scalar_dense"], "the counter sees what it should see"


def test_a_compiled_model_tells_as_much(data: Path, tmp_path: Path) -> None:
    plain, compiled = talker(), talker()
    compiled.keep = False
    torch._dynamo.reset()
    compiled.compile(backend="aot_eager")
    events = []
    for name, model in (("plain", plain), ("compiled", compiled)):
        trainer = open_trainer(data, tmp_path / name, model, compile=False)
        events.append(steps_of(trainer))
        trainer.run()
    assert [event["metrics"] for event in events[1]] == [
        {name: pytest.approx(value) for name, value in event["metrics"].items()} for event in events[0]
    ]


def test_a_resumed_run_goes_on_with_them(data: Path, tmp_path: Path) -> None:
    whole = open_trainer(data, tmp_path / "whole")
    expected = steps_of(whole)
    whole.run()
    open_trainer(data, tmp_path / "run", steps=2, record=True, tensorboard=False).run()
    second = open_trainer(data, tmp_path / "run", record=True, tensorboard=False)
    rest = steps_of(second)
    second.run()
    assert [event["metrics"] for event in rest] == [event["metrics"] for event in expected[1:]]
    history = json.loads((tmp_path / "run" / "metrics_history.json").read_text())
    assert history["steps"] == [2, 4, 6]
    assert history["metrics"]["mean_token"] == pytest.approx([event["metrics"]["mean_token"] for event in expected])


def test_they_are_recorded(data: Path, tmp_path: Path) -> None:
    trainer = open_trainer(data, tmp_path, record=True)
    found = steps_of(trainer)
    trainer.run()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["metrics"] for line in lines if line["kind"] == "step"] == [event["metrics"] for event in found]
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    points = [(point.step, point.value) for point in board.Scalars("model/mean_token")]
    assert points == [(event["step"], pytest.approx(event["metrics"]["mean_token"])) for event in found]


# The parts


def test_numbers_come_one_interval_late() -> None:
    late = LateReader(2, 1, torch.device("cpu"))
    for value in (1.0, 3.0):
        late.add(torch.tensor(0.5), rate=torch.tensor(value))
    assert late.close({"step": 2}) is None
    late.add(torch.tensor(0.25), rate=torch.tensor(8.0))
    first = late.close({"step": 3})
    assert first is not None
    assert (first.facts, first.names, column_means(first)) == ({"step": 2}, ("rate",), {"rate": 2.0})
    assert first.values[:, 0].tolist() == [0.5, 0.5]
    last = late.flush()
    assert last is not None
    assert column_means(last) == {"rate": 8.0}


def test_names_may_change_from_one_interval_to_the_next() -> None:
    late = LateReader(2, 1, torch.device("cpu"))
    one = torch.tensor(1.0)
    late.add(one)
    late.add(one, rate=one)  # the first step of an interval says what there is
    late.close({})
    late.add(one, rate=one, share=one)
    late.add(one, rate=one * 3)
    first, second = late.close({}), late.flush()
    assert first is not None
    assert second is not None
    assert column_means(first) == {}
    assert column_means(second) == {"rate": 2.0, "share": 1.0}
    late.add(one, rate=one * math.nan)
    late.close({})
    third = late.flush()
    assert third is not None
    assert math.isnan(column_means(third)["rate"])


def test_history_fills_gaps_with_nothing() -> None:
    events = [
        run_event(),
        step_event(10),
        step_event(20, metrics={"rate": 0.5}),
        step_event(30, metrics={"rate": None}),
    ]
    told = History.from_events(events).as_dict()
    assert told["metrics"] == {"rate": [None, 0.5, None]}
    assert History.from_events(events[:2]).as_dict()["metrics"] == {}


def test_they_are_seen() -> None:
    status = RunStatus()
    status.add(run_event())
    status.add(step_event(10, metrics={"firing_rate": 0.0812, "spar\nsity": 0.5, "lost": math.nan}))
    line = plain_line(status)
    assert "  firing_rate 0.0812  spar sity 0.5  " in line
    assert "lost" not in line
    console = Console(width=80, height=24, file=io.StringIO(), record=True)
    console.print(live_view(status, width=80, height=24, colour=False))
    assert "firing_rate 0.0812" in console.export_text()
