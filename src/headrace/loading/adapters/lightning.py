"""For Lightning: a data module that gives the loader's batches and keeps the loader's state in checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch.utils.data import DataLoader

from headrace.errors import UsageError
from headrace.loading.adapters.dataset import TorchDataset
from headrace.loading.adapters.layouts import Tensors, checked_layout
from headrace.loading.loader import Loader

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def lightning_package() -> Any:
    """Lightning under the name that this process has imported, because each name has a Trainer of its own."""
    for name in sorted(PACKAGES, key=lambda name: name not in sys.modules):
        if find_spec(name.partition(".")[0]):
            return import_module(name)
    raise UsageError("LightningData needs the package 'lightning' or 'pytorch-lightning'. Run: pip install lightning")


class _Continuing(DataLoader[Tensors]):
    """Begins every iteration where training stands: Lightning iterates anew in each of its epochs."""

    position: Callable[[], int]

    def __iter__(self) -> Any:
        assert isinstance(self.dataset, TorchDataset)
        self.dataset.start = self.position()
        return super().__iter__()

    def state_dict(self) -> dict[str, Any]:
        """There, because Lightning warns about a loader that cannot be resumed within an epoch."""
        return {"step": self.position()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing is left to do: the data module has been restored before its loaders are asked for."""
        assert state["step"] == self.position(), "both are saved at the same moment"


class LightningData(lightning_package().LightningDataModule):  # type: ignore[misc]  # known when it is imported
    """The batches of a loader, and of another for validation, from front to back unless `val_steps` says how many.

    The position is what Lightning has trained on, not what it or worker processes have fetched ahead.
    """

    def __init__(
        self,
        loader: Loader,
        val_loader: Loader | None = None,
        *,
        val_steps: int | None = None,
        layout: str = "plain",
        num_workers: int = 0,
    ) -> None:
        super().__init__()
        self.loader, self.val_loader, self.val_steps = loader, val_loader, val_steps
        self.layout, self.num_workers = checked_layout(layout), num_workers
        if val_loader is not None:  # Lightning looks whether there is a val_dataloader, and warns about an empty one
            self.val_dataloader = self._validation
        self._before: int | None = None  # the loader's step when Lightning had trained on nothing

    def train_dataloader(self) -> DataLoader[Tensors]:
        self._check_ranks(self.loader)
        self._before = self.loader.step - self._trained()
        batches = _Continuing(self._dataset(self.loader, None), batch_size=None, num_workers=self.num_workers)
        batches.position = self._position
        return batches

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict(self._position())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(state)
        self._before = None

    def _validation(self) -> DataLoader[Tensors]:
        assert self.val_loader is not None, "offered only when there is one"
        self._check_ranks(self.val_loader)
        steps = self.val_loader.steps_per_epoch if self.val_steps is None else self.val_steps
        return DataLoader(self._dataset(self.val_loader, steps), batch_size=None, num_workers=self.num_workers)

    def _dataset(self, loader: Loader, steps: int | None) -> TorchDataset:
        return TorchDataset(loader, layout=self.layout, steps=steps)

    def _position(self) -> int:
        return self.loader.step if self._before is None else self._before + self._trained()

    def _trained(self) -> int:
        """Batches that this Trainer has trained on, earlier runs that it resumed included."""
        return 0 if self.trainer is None else int(self.trainer.fit_loop.epoch_loop.batch_progress.total.processed)

    def _check_ranks(self, loader: Loader) -> None:
        if self.trainer is None or (loader.rank, loader.world_size) == (
            self.trainer.global_rank,
            self.trainer.world_size,
        ):
            return
        raise UsageError(
            f"The loader is for rank {loader.rank} of {loader.world_size}, but this process is rank "
            f"{self.trainer.global_rank} of {self.trainer.world_size}. Open it with rank={self.trainer.global_rank}, "
            f"world_size={self.trainer.world_size}, so that each rank trains on its own part of every batch."
        )
