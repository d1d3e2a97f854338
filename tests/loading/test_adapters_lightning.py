"""Lightning trains on the loader's batches, and a checkpoint goes on at exactly the next one."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import Loader
from headrace.errors import UsageError
from headrace.loading import adapters

L = pytest.importorskip("lightning.pytorch")

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:The dirpath has changed"),
    pytest.mark.filterwarnings("ignore:.*Checkpoint directory .* exists and is not empty"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def options(**more: Any) -> dict[str, Any]:
    return {"seq_len": 16, "batch_size": 4, "seed": 3, **more}


def expected(data: Path, steps: int) -> list[list[list[int]]]:
    return [batch.input_ids.tolist() for batch in itertools.islice(Loader(data, **options()), steps)]


class Model(L.LightningModule):
    """Remembers what it was given."""

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Embedding(259, 4), torch.nn.Linear(4, 259))
        self.seen: list[list[list[int]]] = []
        self.fails_at = fails_at

    def loss(self, batch: dict[str, Any]) -> torch.Tensor:
        logits = self.layers(batch["input_ids"])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())

    def training_step(self, batch: dict[str, Any], _: int) -> torch.Tensor:
        if len(self.seen) == self.fails_at:
            raise RuntimeError("the power is gone")
        self.seen.append(batch["input_ids"].tolist())
        return self.loss(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class ValidatedModel(Model):
    def __init__(self) -> None:
        super().__init__()
        self.validated: list[int] = []

    def validation_step(self, batch: dict[str, Any], _: int) -> None:
        self.validated.append(batch["step"])


def trainer(out: Path, *, max_steps: int, **settings: Any) -> Any:
    saving = L.callbacks.ModelCheckpoint(dirpath=out, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    return L.Trainer(
        max_steps=max_steps,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[saving],
        **settings,
    )


@pytest.mark.parametrize(
    ("workers", "settings"),
    [(0, {}), (2, {}), (0, {"accumulate_grad_batches": 2}), (0, {"limit_train_batches": 3, "max_epochs": -1})],
    ids=["plain", "workers", "accumulation", "epochs"],
)
def test_a_checkpoint_goes_on_at_the_next_batch(
    data: Path, tmp_path: Path, workers: int, settings: dict[str, Any]
) -> None:
    def module() -> Any:
        return adapters.LightningData(Loader(data, **options()), num_workers=workers)

    whole = Model()
    trainer(tmp_path / "out", max_steps=5, **settings).fit(whole, datamodule=module())
    assert whole.seen == expected(data, len(whole.seen))
    assert len(whole.seen) >= 5
    for step in (2, 3):
        rest = Model()
        saved = tmp_path / "out" / f"step={step}.ckpt"
        trainer(tmp_path / "again", max_steps=5, **settings).fit(rest, datamodule=module(), ckpt_path=saved)
        assert rest.seen == whole.seen[len(whole.seen) - len(rest.seen) :]
        before = torch.load(saved, weights_only=True)["LightningData"]["step"]
        assert before + len(rest.seen) == len(whole.seen)
        for mine, theirs in zip(whole.parameters(), rest.parameters(), strict=True):
            assert torch.equal(mine, theirs)


def test_a_batch_that_failed_is_not_counted(data: Path, tmp_path: Path) -> None:
    failing, module = trainer(tmp_path / "out", max_steps=9), adapters.LightningData(Loader(data, **options()))
    with pytest.raises(RuntimeError, match="the power is gone"):
        failing.fit(Model(fails_at=4), datamodule=module)
    assert module.state_dict()["step"] == 4


def test_validation_reads_its_own_loader_and_moves_nothing(data: Path, tmp_path: Path) -> None:
    validation = Loader(data, **options(holdout=0.3, split="val", shuffle=False))
    module = adapters.LightningData(Loader(data, **options()), validation, val_steps=2)
    model = ValidatedModel()
    settings = {"val_check_interval": 2, "num_sanity_val_steps": 1}
    trainer(tmp_path / "out", max_steps=4, **settings).fit(model, datamodule=module)
    assert model.seen == expected(data, 4)
    assert model.validated == [0, 0, 1, 0, 1]
    assert torch.load(tmp_path / "out" / "step=4.ckpt", weights_only=True)["LightningData"]["step"] == 4


def test_a_loader_that_begins_later(data: Path, tmp_path: Path) -> None:
    loader = Loader(data, **options())
    next(loader), next(loader)
    module, model = adapters.LightningData(loader), Model()
    trainer(tmp_path / "out", max_steps=3).fit(model, datamodule=module)
    assert model.seen == expected(data, 5)[2:]
    assert module.state_dict()["step"] == 5


def test_another_number_of_ranks_is_refused(data: Path, tmp_path: Path) -> None:
    module = adapters.LightningData(Loader(data, **options(), rank=1, world_size=2))
    with pytest.raises(UsageError, match="rank 1 of 2, but this process is rank 0 of 1"):
        trainer(tmp_path / "out", max_steps=1).fit(Model(), datamodule=module)


def test_the_package_is_the_one_that_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    other = pytest.importorskip("pytorch_lightning")
    monkeypatch.delitem(sys.modules, "lightning.pytorch")
    spec = importlib.util.find_spec("headrace.loading.adapters.lightning")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.LightningData, other.LightningDataModule)
    assert issubclass(adapters.LightningData, L.LightningDataModule)
