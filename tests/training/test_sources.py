"""What each source gave, as a run's events tell it: counted from the batches themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from dataset import EOS, write_dataset

from headrace import Loader, TrainConfig, Trainer
from headrace.loading.live import LiveText
from headrace.loading.mixture import Mixture
from headrace.models import build_model
from headrace.training.sources import source_counts

SEQ_LEN, BATCH = 8, 4


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def datasets(tmp_path: Path) -> list[str]:
    """Each holds one token only, so that a row says which dataset it came from."""
    for number, size in enumerate((40, 200, 90)):
        write_dataset(tmp_path / "data" / f"d{number}", [[[number] * 10] * size])
    return [str(tmp_path / "data" / f"d{number}") for number in range(3)]


def drawn(loader: Loader, batches: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for step in range(batches):
        found.update(loader.batch_at(step).tokens[:, 0].tolist())
    return found


def check(loader: Loader, names: list[str], batches: int) -> dict[str, Any]:
    told = source_counts(loader, batches)["sources"]
    counted = drawn(loader, batches)
    assert [told[name]["samples"] for name in names] == [counted[number] for number in range(len(names))]
    for name, row in zip(names, loader.progress(batches), strict=True):
        assert told[name]["tokens"] == told[name]["samples"] * SEQ_LEN
        assert told[name]["epochs"] == told[name]["samples"] / row.size
    return told


def test_counts_are_those_of_the_batches(datasets: list[str]) -> None:
    loader = Loader(dict(zip(datasets, (0.5, 0.3, 0.2), strict=True)), seq_len=SEQ_LEN, batch_size=BATCH)
    for batches in (0, 1, 7, 50):
        told = check(loader, datasets, batches)
        assert [row["target"] for row in told.values()] == pytest.approx([0.5, 0.3, 0.2])


def test_without_weights_the_target_is_the_size(datasets: list[str]) -> None:
    loader = Loader(datasets, seq_len=SEQ_LEN, batch_size=BATCH)
    sizes = [row.size for row in loader.progress()]
    told = check(loader, datasets, 9)
    assert [row["target"] for row in told.values()] == pytest.approx([size / sum(sizes) for size in sizes])


def test_the_target_is_the_one_that_held_for_the_last_sample(datasets: list[str]) -> None:
    first, second, third = datasets
    mixture = Mixture({first: 1.0, second: 1.0}, changes={20: {second: 1.0, third: 3.0}})
    loader = Loader(mixture, seq_len=SEQ_LEN, batch_size=BATCH)
    before, after = check(loader, datasets, 5), check(loader, datasets, 6)
    assert [row["target"] for row in before.values()] == [0.5, 0.5, 0.0]
    assert [row["target"] for row in after.values()] == [0.0, 0.25, 0.75]


def test_one_source_and_live_text_have_nothing_to_tell(datasets: list[str], tmp_path: Path) -> None:
    assert source_counts(Loader(datasets[0], seq_len=SEQ_LEN, batch_size=BATCH), 3) == {}
    (tmp_path / "a.txt").write_text("the mill turns\n" * 100)
    live = Loader(LiveText(tmp_path / "a.txt", tokenizer="bytes"), seq_len=SEQ_LEN, batch_size=BATCH)
    assert source_counts(live, 3) == {}


def trainer(data: Any, out: Path, **settings: Any) -> tuple[Trainer, list[dict[str, Any]]]:
    shape = {"width": 16, "layers": 1, "heads": 1, "ffn": 16, "context": SEQ_LEN}
    model = build_model("transformer", "nano", vocab_size=EOS + 3, seed=1, **shape)
    loader = Loader(data, seq_len=SEQ_LEN, batch_size=BATCH)
    config = TrainConfig(out=out, **{"steps": 7, "log_every": 2, "warmup": 1, "checkpoint_every": 3, **settings})
    made, events = Trainer(model, loader, config, record=False), list[dict[str, Any]]()
    made.listen(lambda event: events.append(event) if event["kind"] == "step" else None)
    return made, events


def test_a_run_tells_what_its_steps_have_seen(datasets: list[str], tmp_path: Path) -> None:
    """The feeder is ahead of the model; what it has taken beyond the step does not count."""
    weights = dict(zip(datasets, (0.5, 0.3, 0.2), strict=True))
    made, events = trainer(weights, tmp_path / "run", gradient_accumulation=2)
    made.run()
    assert [event["step"] for event in events] == [2, 4, 6, 7]
    for event in events:
        counted = drawn(made.loader, event["step"] * 2)
        assert [row["samples"] for row in event["sources"].values()] == [counted[number] for number in range(3)]
        assert sum(row["tokens"] for row in event["sources"].values()) == event["tokens"]


def test_a_run_that_goes_on_counts_on(datasets: list[str], tmp_path: Path) -> None:
    weights = dict(zip(datasets, (0.5, 0.3, 0.2), strict=True))
    first, whole = trainer(weights, tmp_path / "whole", checkpoint_every=100)
    first.run()
    trainer(weights, tmp_path / "run", steps=4)[0].run()
    second, rest = trainer(weights, tmp_path / "run")
    second.run()
    by_step = {event["step"]: event["sources"] for event in whole}
    assert rest[-1]["sources"] == by_step[7]
    assert rest[0]["step"] > 4


def test_a_run_on_one_dataset_says_nothing_of_sources(datasets: list[str], tmp_path: Path) -> None:
    made, events = trainer(datasets[0], tmp_path / "run", steps=2)
    made.run()
    assert events
    assert all("sources" not in event for event in events)
