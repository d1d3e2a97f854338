"""Prepared datasets as what a loader draws from: the mixture, its order, and the state of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.loading.boundaries import Boundaries
from headrace.loading.datasets import BEST_FIT, ChunkRange, Selection, fingerprint, open_datasets
from headrace.loading.feed import Feed
from headrace.loading.gather import ChunkGatherer, Gatherer
from headrace.loading.memory import choose_access
from headrace.loading.mixture import Mix, Mixture
from headrace.loading.planned import PlannedGatherer
from headrace.loading.sampler import Progress, Sampler

SAME = ("seed", "shuffle", "fingerprints")  # must be as they were to resume


class PreparedData:
    """A mixture of prepared datasets, opened. What comes at a step is arithmetic, so it holds no position."""

    def __init__(
        self, mixture: Mixture, selection: Selection, *, batch_size: int, seed: int, shuffle: bool, access: str | None
    ) -> None:
        self.mixture, self.selection, self.batch_size = mixture, selection, batch_size
        self.seed, self.shuffle, self._access = seed, shuffle, access
        self.datasets = self._open()

    @property
    def vocab_size(self) -> int:
        return max(dataset.store.vocab_size for dataset in self.datasets)

    @property
    def chunks(self) -> int:
        return sum(dataset.count for dataset in self.datasets)

    def has_split(self, split: str) -> bool:
        return all(any(shard.documents for shard in data.store.metadata.of_split(split)) for data in self.datasets)

    def progress(self, step: int) -> list[Progress]:
        return self._sampler().progress(step * self.batch_size)

    def change(self, step: int, mix: Mix) -> None:
        """Draw in other proportions from this step on."""
        self.mixture = self.mixture.with_change(step * self.batch_size, mix)
        self.datasets = self._open(self.datasets)

    def start(self, step: int, share: slice, buffers: Sequence[NDArray[Any]], *, with_boundaries: bool) -> Feed:
        for dataset in self.datasets:
            if dataset.store.access == "whole":
                dataset.store.maps.populate()
        return Feed(self._gatherer(share), buffers, step, with_boundaries=with_boundaries or self._planned)

    def gather(self, step: int, share: slice, out: NDArray[Any], *, with_boundaries: bool) -> Boundaries | None:
        """The rows of one step into `out`."""
        gatherer = self._gatherer(share)
        rows = gatherer.rows(step)
        gatherer.copy(rows, out)
        return gatherer.boundaries(rows) if with_boundaries or self._planned else None

    def state(self, step: int) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "shuffle": self.shuffle,
            "mixture": self.mixture.state(),
            "fingerprints": [fingerprint(dataset) for dataset in self.datasets],
        }

    def differences(self, state: dict[str, Any]) -> list[str]:
        """What of a saved state does not fit these data."""
        mine = self.state(0)
        return [
            f"{name}: {state.get(name)!r} then, {mine[name]!r} now" for name in SAME if state.get(name) != mine[name]
        ]

    def load(self, state: dict[str, Any]) -> None:
        saved = Mixture.from_state(state["mixture"])
        self.mixture = _renamed(saved, dict(zip(saved.names, self.mixture.names, strict=True)))

    @property
    def _planned(self) -> bool:
        return self.selection.packing == BEST_FIT

    def _open(self, opened: Sequence[ChunkRange] = ()) -> list[ChunkRange]:
        datasets = open_datasets(self.mixture.names, self.selection, opened)
        access = self._access or choose_access(dataset.store.metadata for dataset in datasets)
        for dataset in datasets[len(opened) :]:
            dataset.store.access = access
        return datasets

    def _sampler(self) -> Sampler:
        sizes = [dataset.count for dataset in self.datasets]
        return Sampler(self.mixture, sizes, seed=self.seed, shuffle=self.shuffle)

    def _gatherer(self, share: slice) -> Gatherer:
        kind = PlannedGatherer if self._planned else ChunkGatherer
        return kind(
            self._sampler(),
            self.datasets,
            seq_len=self.selection.seq_len,
            batch_size=self.batch_size,
            share=share,
        )


def check_dtype(vocab_size: int, dtype: np.dtype[Any]) -> None:
    if dtype == np.uint16 and vocab_size > 1 << 16:
        raise UsageError(
            f"dtype uint16 holds ids below 65,536, but the vocabulary has {vocab_size:,}. Use int32 or int64."
        )


def _renamed(mixture: Mixture, names: dict[str, str]) -> Mixture:
    """The same mixture where the data has moved: datasets are known by their fingerprints, not by their paths."""

    def moved(shares: Any) -> Any:
        return {names[k]: v for k, v in shares.items()} if isinstance(shares, dict) else [names[k] for k in shares]

    changes = {sample: moved(shares) for sample, shares in mixture.changes.items()}
    return Mixture(changes.pop(0), changes=changes)
