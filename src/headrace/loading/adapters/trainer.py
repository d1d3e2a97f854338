"""For Hugging Face's Trainer: a dataset of single sequences that batches to exactly the loader's batches."""

from __future__ import annotations

from collections.abc import Sequence

from torch.utils.data import Dataset

from headrace.errors import UsageError
from headrace.loading.adapters.layouts import LAYOUTS, Tensors, checked_layout
from headrace.loading.adapters.reader import StepReader
from headrace.loading.loader import Loader


class TrainerDataset(Dataset[Tensors]):
    """Give it to Trainer with `train_sampling_strategy="sequential"`: the loader has shuffled already.

    Sequence i is number i of the loader's order over all ranks. It is found by index because Trainer then resumes by
    skipping numbers, where it would read and drop all batches of an iterator, and because Accelerate then gives each
    rank its own batches, where it would send an iterator's from rank 0. What is asked for must be a batch of the
    loader's: a Trainer that shuffles, or batches in another size, is refused. `steps` are the steps of one of Trainer's
    epochs; the next goes on in the loader's order.
    """

    def __init__(self, loader: Loader, *, layout: str = "hf", steps: int | None = None) -> None:
        self.loader, self.layout = loader, checked_layout(layout)
        self.steps = loader.steps_per_epoch if steps is None else steps
        self._first = loader.step
        self._epoch = 0
        self._reader = StepReader(loader)

    def __len__(self) -> int:
        return self.steps * self.loader.batch_size

    def set_epoch(self, epoch: int) -> None:
        """Called by Trainer when an epoch begins."""
        self._epoch = epoch

    def __getitem__(self, index: int) -> Tensors:
        step, row = divmod(index, self.loader.batch_size)
        row -= self.loader.rank * self.loader.local_batch_size
        if not (0 <= index < len(self) and 0 <= row < self.loader.local_batch_size):
            raise IndexError(f"sequence {index} of {len(self)} is not one of rank {self.loader.rank}'s")
        return self._rows(step)[row]

    def __getitems__(self, indices: Sequence[int]) -> list[Tensors]:
        """One batch: DataLoader asks for its sequences together."""
        size, local = self.loader.batch_size, self.loader.local_batch_size
        step, row = divmod(indices[0], size)
        if row != self.loader.rank * local or list(indices) != list(range(indices[0], indices[0] + local)):
            raise UsageError(self._mismatch(indices))
        return self._rows(step)

    def _rows(self, step: int) -> list[Tensors]:
        batch = self._reader.read(self._first + self._epoch * self.steps + step)
        tensors = LAYOUTS[self.layout](batch)
        return [{name: values[row] for name, values in tensors.items()} for row in range(len(batch.tokens))]

    def _mismatch(self, indices: Sequence[int]) -> str:
        loader = self.loader
        return (
            f"Trainer asks rank {loader.rank} for the sequences {list(indices)[:4]} and so on, {len(indices)} in all, "
            f"which are not a batch of this loader: rank {loader.rank} of {loader.world_size}, "
            f"{loader.local_batch_size} sequences each. Set train_sampling_strategy='sequential' and "
            f"per_device_train_batch_size={loader.local_batch_size}, and open the loader with Trainer's rank and world "
            f"size: rank=args.process_index, world_size=args.world_size."
        )
