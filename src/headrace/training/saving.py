"""A run's state into checkpoints and out of them: held by one process, by each rank whole, or by each a shard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from headrace.errors import HeadraceError
from headrace.loading import Loader
from headrace.training.checkpoint import Checkpoints
from headrace.training.checkpoint_files import LoadedCheckpoint
from headrace.training.checkpoint_folder import checkpoint_path, writing_name
from headrace.training.parallel import Group
from headrace.training.precision import Precision
from headrace.training.randomness import restore_rng, rng_state
from headrace.training.strategies import Sharded, Strategy


class Progress(NamedTuple):
    """How far a run is."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


@contextmanager
def claimed(checkpoints: Checkpoints, group: Group) -> Iterator[None]:
    """Rank 0 holds the folder for all."""
    group.on_main(checkpoints.claim)
    try:
        yield
    finally:
        if group.main:
            checkpoints.close()


class Saver:
    """Everything that a run goes on from, apart from its settings."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        group: Group,
        strategy: Strategy,
        *,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        loader: Loader,
        seed: int,
    ) -> None:
        self.checkpoints, self._group, self._strategy = checkpoints, group, strategy
        self._optimizer, self._precision, self._loader, self._seed = optimizer, precision, loader, seed

    def save(
        self, progress: Progress, loader_state: dict[str, Any], manifest: Mapping[str, Any], *, background: bool
    ) -> None:
        """A whole checkpoint is written by rank 0 while training goes on; of shards every rank writes its own first."""
        state = {
            "optimizer": self._optimizer.state_dict(),
            "precision": self._precision.state_dict(),
            "loader": loader_state,
            "rng": rng_state(),
            "tokens": progress.tokens,
            "seconds": progress.seconds,
        }
        if isinstance(self._strategy, Sharded):
            self._save_shards(progress.step, state, manifest)
        elif not background:
            self._group.on_main(lambda: self._save_whole(progress.step, state, manifest, background=False))
        elif self._group.main:
            self._save_whole(progress.step, state, manifest, background=True)

    def finished(self, step: int) -> bool:
        """Whether this step has its checkpoint on the disk; waits for one that is being written."""
        return self._group.on_main(lambda: self._is_saved(step))

    def resume(self) -> LoadedCheckpoint | None:
        """Load the newest whole checkpoint, which may be of another number of ranks; rank 0 decides which it is."""
        if self._group.world_size == 1 and not self._strategy.sharded:
            found = self.checkpoints.latest()
        else:
            step = self._group.on_main(self.checkpoints.latest_step)
            found = None if step is None else self._read(step)
        if found is None:
            self._group.part_ways(self._seed, 0)
            return None
        self._strategy.load(found.model_state, self._optimizer, found.state["optimizer"])
        self._precision.load_state_dict(found.state["precision"])
        self._loader.load_state_dict(found.state["loader"])
        restore_rng(found.state["rng"])
        self._group.part_ways(self._seed, found.step)
        return found

    def _read(self, step: int) -> LoadedCheckpoint:
        place = self._strategy.place(self._optimizer) if isinstance(self._strategy, Sharded) else None
        return self.checkpoints.at(step, place=place, checked=True)

    def _save_whole(self, step: int, state: dict[str, Any], manifest: Mapping[str, Any], *, background: bool) -> None:
        model = self._strategy.model.state_dict()
        self.checkpoints.save(step, model, state, manifest=manifest, background=background)

    def _save_shards(self, step: int, state: dict[str, Any], manifest: Mapping[str, Any]) -> None:
        from headrace.training.checkpoint_shards import SHARDS, named_tensors, write_shards

        part = writing_name(checkpoint_path(self.checkpoints.folder, step))
        moments = state["optimizer"].pop("state")
        tensors = named_tensors(self._strategy.model.state_dict(), moments)
        self._group.on_main(lambda: _begin(part))
        try:
            parts = self._group.gathered(write_shards(part / SHARDS, tensors, self._group.rank))
            files = {name: file for files in parts for name, file in files.items()}
            self._group.on_main(lambda: self.checkpoints.save_shards(step, files, state, manifest=manifest))
        except HeadraceError:
            if self._group.main:
                shutil.rmtree(part, ignore_errors=True)
            raise

    def _is_saved(self, step: int) -> bool:
        self.checkpoints.wait()
        return any(manifest.step == step for manifest in self.checkpoints.list())


def _begin(part: Any) -> None:
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
