"""torch's DataLoader and torchdata's StatefulDataLoader give the loader's batches, in its order, with any workers."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from dataset import random_documents, write_dataset
from torch.utils.data import DataLoader

from headrace import Loader
from headrace.errors import UsageError
from headrace.loading.adapters import TorchDataset
from headrace.loading.adapters.layouts import LAYOUTS
from headrace.loading.adapters.reader import StepReader
from headrace.loading.live import LiveText

few_cores = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
forks_beside_threads = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # Python 3.12
imports_torchdata = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data", [random_documents(seed, 60) for seed in range(3)])
    return tmp_path / "data"


def options(**more: Any) -> dict[str, Any]:
    return {"seq_len": 16, "batch_size": 4, "seed": 3, **more}


def expected(data: Path, steps: int, **more: Any) -> list[list[list[int]]]:
    return [batch.tokens.tolist() for batch in itertools.islice(Loader(data, **options(**more)), steps)]


def rows(batch: dict[str, Any]) -> list[list[int]]:
    return torch.cat([batch["input_ids"], batch["targets"][:, -1:]], 1).tolist()


# DataLoader


@few_cores
@forks_beside_threads
@pytest.mark.parametrize(("workers", "context"), [(0, None), (1, "fork"), (2, "fork"), (3, "fork"), (2, "spawn")])
def test_the_order_is_the_loaders(data: Path, workers: int, context: str | None) -> None:
    loader = Loader(data, **options())
    next(loader)  # its thread runs when workers are forked
    batches = DataLoader(TorchDataset(loader), batch_size=None, num_workers=workers, multiprocessing_context=context)
    found = list(itertools.islice(batches, 11))
    assert [rows(batch) for batch in found] == expected(data, 12)[1:]
    assert [batch["step"] for batch in found] == list(range(1, 12))
    assert loader.step == 1


@forks_beside_threads
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_are_kept_stay_as_they_are(data: Path, workers: int) -> None:
    dataset = TorchDataset(Loader(data, **options(prefetch=1)), steps=9)
    kept = list(DataLoader(dataset, batch_size=None, num_workers=workers))
    assert [rows(batch) for batch in kept] == expected(data, 9)
    assert all(batch[name].is_contiguous() for batch in kept for name in ("input_ids", "targets"))


def test_ranks_get_their_parts(data: Path) -> None:
    ranks = [TorchDataset(Loader(data, **options(), rank=rank, world_size=2), steps=5) for rank in range(2)]
    parts = [[rows(batch) for batch in DataLoader(rank, batch_size=None)] for rank in ranks]
    assert [first + second for first, second in zip(*parts, strict=True)] == expected(data, 5)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
def test_ids_are_int64(data: Path, dtype: str) -> None:
    batch = next(iter(TorchDataset(Loader(data, **options(dtype=dtype)))))
    assert batch["input_ids"].dtype == batch["targets"].dtype == torch.int64
    assert rows(batch) == expected(data, 1)[0]


def test_boundaries_come_along(data: Path) -> None:
    loader = Loader(data, **options(documents=True))
    batch = next(iter(DataLoader(TorchDataset(loader), batch_size=None)))
    exact = loader.batch_at(0).boundaries
    assert exact is not None
    assert {name: batch[name].tolist() for name in exact._fields} == {k: v.tolist() for k, v in exact._asdict().items()}


def test_an_unknown_layout_is_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="layout 'hugging': it must be one of plain, hf, hf-shifted"):
        TorchDataset(Loader(data, **options()), layout="hugging")


def test_a_reader_gives_any_step_and_goes_on_from_there(data: Path) -> None:
    exact = expected(data, 30)
    reader = StepReader(Loader(data, **options()))
    for step in (4, 5, 6, 7, 2, 3, 20, 0, 1, 1, 2):
        assert reader.read(step).tokens.tolist() == exact[step]


def test_live_text_is_refused_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some words\n" * 100)
    live = LiveText(str(tmp_path / "text.txt"), tokenizer="headrace-32k", threads=1)
    with pytest.raises(UsageError, match="Prepare the text first: headrace prepare"):
        next(iter(TorchDataset(Loader(live, seq_len=4, batch_size=2))))


# StatefulDataLoader


@imports_torchdata
@forks_beside_threads
@pytest.mark.parametrize("workers", [0, 2])
def test_resuming_a_stateful_loader_at_every_step(data: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def batches() -> Any:
        return stateful.StatefulDataLoader(
            TorchDataset(Loader(data, **options())), batch_size=None, num_workers=workers
        )

    exact = expected(data, 9)
    running = batches()
    for step, batch in enumerate(itertools.islice(running, 7)):
        assert rows(batch) == exact[step]
        resumed = batches()
        resumed.load_state_dict(running.state_dict())
        assert [rows(one) for one in itertools.islice(resumed, 2)] == exact[step + 1 : step + 3]


@imports_torchdata
@forks_beside_threads
@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_stateful_loader_ends_where_it_would_have(data: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    settings = {"batch_size": None, "num_workers": workers}
    running = stateful.StatefulDataLoader(TorchDataset(Loader(data, **options()), steps=5), **settings)
    list(itertools.islice(running, 3))
    resumed = stateful.StatefulDataLoader(TorchDataset(Loader(data, **options()), steps=5), **settings)
    resumed.load_state_dict(running.state_dict())
    assert [rows(batch) for batch in resumed] == expected(data, 5)[3:]
    assert [rows(batch) for batch in resumed] == expected(data, 5)


@imports_torchdata
def test_a_stateful_loader_of_other_data_is_refused(data: Path) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    running = stateful.StatefulDataLoader(TorchDataset(Loader(data, **options())), batch_size=None)
    next(iter(running))
    other = stateful.StatefulDataLoader(TorchDataset(Loader(data, **options(seed=4))), batch_size=None)
    other.load_state_dict(running.state_dict())
    with pytest.raises(UsageError, match="seed: 3 then, 4 now"):
        next(iter(other))


# Layouts


def tiny_llama() -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=259, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
        )
    )


@pytest.mark.parametrize("documents", [False, True])
def test_the_loss_of_a_hugging_face_model_is_that_on_our_targets(data: Path, documents: bool) -> None:
    model, batch = tiny_llama(), Loader(data, **options(documents=documents)).batch_at(0)
    plain, hf, shifted = (LAYOUTS[name](batch) for name in ("plain", "hf", "hf-shifted"))
    assert set(hf) == {"input_ids", "labels"} | ({"position_ids"} if documents else set())
    with torch.no_grad():
        logits = model(plain["input_ids"], position_ids=plain.get("position_ids")).logits
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), plain["targets"], reduction="none")
        counted = plain.get("loss_mask", torch.ones_like(losses, dtype=torch.bool))
        assert documents == (not counted.all())
        torch.testing.assert_close(model(**shifted).loss, losses[counted].mean())
        torch.testing.assert_close(model(**hf).loss, losses[:, :-1][counted[:, :-1]].mean())
