"""Hugging Face's Trainer sees the loader's batches, one for each of its steps, and goes on at the right one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from headrace import Loader
from headrace.errors import UsageError
from headrace.loading.adapters import TrainerDataset

transformers = pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    # Trainer pins memory for a device that is not there, and torch says so.
    pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning"),
]


def options(**more: Any) -> dict[str, Any]:
    return {"seq_len": 16, "batch_size": 4, "seed": 3, **more}


def expected(data: Path, steps: int) -> list[list[list[int]]]:
    return [batch.input_ids.tolist() for batch in itertools.islice(Loader(data, **options()), steps)]


def tiny_llama() -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=259, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
        )
    )


def train(
    data: Path, out: Path, *, max_steps: int, steps: int | None = None, resume: Path | None = None, **settings: Any
) -> tuple[list[list[list[int]]], Any]:
    """The batches that the model saw, and the model."""
    model, seen = tiny_llama(), []
    model.register_forward_pre_hook(lambda _, args, inputs: seen.append(inputs["input_ids"].tolist()), with_kwargs=True)
    arguments = transformers.TrainingArguments(
        output_dir=str(out),
        max_steps=max_steps,
        per_device_train_batch_size=4,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy=settings.pop("save_strategy", "no"),
        **{"train_sampling_strategy": "sequential", "gradient_accumulation_steps": 2, **settings},
    )
    dataset = TrainerDataset(Loader(data, **options()), steps=steps)
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=dataset)
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return seen, model


@pytest.mark.parametrize(("steps", "saved"), [(None, 3), (4, 3)], ids=["one epoch", "epochs of 4"])
def test_every_step_sees_the_loaders_batch_and_resuming_the_next(
    data: Path, tmp_path: Path, steps: int | None, saved: int
) -> None:
    settings: dict[str, Any] = {"max_steps": 5, "steps": steps, "save_strategy": "steps", "save_steps": saved}
    whole, one = train(data, tmp_path / "out", **settings)
    rest, other = train(data, tmp_path / "out", resume=tmp_path / "out" / f"checkpoint-{saved}", **settings)
    assert whole == expected(data, 10)
    assert rest == whole[saved * 2 :]
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_all_targets_reach_the_model_where_it_takes_them(data: Path, tmp_path: Path) -> None:
    model, seen = tiny_llama(), []
    model.register_forward_pre_hook(lambda _, args, inputs: seen.append(inputs["shift_labels"]), with_kwargs=True)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=2,
        per_device_train_batch_size=4,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    dataset = TrainerDataset(Loader(data, **options()), layout="hf-shifted")
    transformers.Trainer(model=model, args=arguments, train_dataset=dataset).train()
    loader = Loader(data, **options())
    assert [labels.tolist() for labels in seen] == [loader.batch_at(step).targets.tolist() for step in range(2)]


def test_epochs_of_trainers_follow_each_other(data: Path, tmp_path: Path) -> None:
    seen, _ = train(data, tmp_path / "out", max_steps=-1, num_train_epochs=2, steps=3)
    assert seen == expected(data, 6)


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_workers_of_trainers_change_nothing(data: Path, tmp_path: Path) -> None:
    seen, _ = train(data, tmp_path / "out", max_steps=3, steps=4, dataloader_num_workers=2)
    assert seen == expected(data, 6)


@pytest.mark.parametrize(
    "wrong", [{"train_sampling_strategy": "random"}, {"per_device_train_batch_size": 2}], ids=["shuffled", "size"]
)
def test_a_trainer_that_batches_otherwise_is_refused(data: Path, tmp_path: Path, wrong: dict[str, Any]) -> None:
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **{"train_sampling_strategy": "sequential", "per_device_train_batch_size": 4, **wrong},
    )
    dataset = TrainerDataset(Loader(data, **options()))
    trainer = transformers.Trainer(model=tiny_llama(), args=arguments, train_dataset=dataset)
    with pytest.raises(UsageError, match="train_sampling_strategy='sequential' and per_device_train_batch_size=4"):
        trainer.train()


@pytest.mark.parametrize("world_size", [2, 4])
def test_accelerate_gives_each_rank_its_part(data: Path, world_size: int) -> None:
    shards = pytest.importorskip("accelerate.data_loader")
    parts = []
    for rank in range(world_size):
        dataset = TrainerDataset(Loader(data, **options(), rank=rank, world_size=world_size), steps=6)
        sampler = BatchSampler(SequentialSampler(dataset), 4 // world_size, drop_last=False)
        shard = shards.BatchSamplerShard(sampler, num_processes=world_size, process_index=rank)
        parts.append([batch["input_ids"].tolist() for batch in DataLoader(dataset, batch_sampler=shard)])
    assert [list(itertools.chain(*step)) for step in zip(*parts, strict=True)] == expected(data, 6)


def test_a_rank_that_is_not_the_loaders_is_refused(data: Path) -> None:
    dataset = TrainerDataset(Loader(data, **options(), rank=1, world_size=2))
    with pytest.raises(UsageError, match=r"rank=args\.process_index"):
        dataset.__getitems__([0, 1])
    with pytest.raises(IndexError, match="not one of rank 1's"):
        dataset[1]
    assert dataset[2]["input_ids"].tolist() == expected(data, 1)[0][2]
