"""Mixture: which datasets a run draws from, in what proportion, and from which sample on. Opens nothing."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from headrace.errors import UsageError

Name = str | os.PathLike[str]
Mix = Name | Sequence[Name] | Mapping[Name, float] | Mapping[str, float]
Shares = dict[str, float] | list[str]  # weights, or datasets that are drawn in proportion to their size

EXAMPLE = "Give for example Mixture({'data/web': 0.8, 'data/code': 0.2})."


class Mixture:
    """Datasets with weights, or without any: then in proportion to their tokens.

    `changes` gives another mix from a sample number on, {100_000: {"data/web": 0.5, "data/math": 0.5}}: a dataset that
    it leaves out is not drawn from then on, and one that it names for the first time joins.
    """

    def __init__(self, datasets: Mix, *, changes: Mapping[int, Mix] | None = None) -> None:
        self.changes: dict[int, Shares] = {0: _shares(datasets)}
        for sample in sorted(changes or {}):
            self.changes[_checked_sample(sample)] = _shares((changes or {})[sample])
        # In the order of first mention: sources are known by their number, not by their path, so that a run goes on in
        # the same order where the data has another path; and one that joins later takes no other's number.
        self.names = tuple(dict.fromkeys(name for shares in self.changes.values() for name in shares))

    def with_change(self, at_sample: int, mix: Mix) -> Mixture:
        """The same mixture with one more change; everything before that sample stays as it is, later changes too."""
        later = {sample: shares for sample, shares in self.changes.items() if sample}
        return Mixture(self.changes[0], changes={**later, at_sample: mix})

    def weights(self, sizes: Sequence[int]) -> dict[int, tuple[float, ...]]:
        """Per change a weight for every name, given the size of each in chunks."""
        if len(sizes) != len(self.names):
            raise UsageError(f"{len(sizes)} sizes for {len(self.names)} datasets: give one each, in order.")
        by_name = dict(zip(self.names, sizes, strict=True))
        for name, size in by_name.items():
            if size < 1:
                raise UsageError(
                    f"{name} holds {size} chunks: it needs at least 1. Use shorter chunks, or leave it out."
                )
        return {sample: _weights(shares, by_name) for sample, shares in self.changes.items()}

    def state(self) -> list[Any]:
        """The mixture as JSON, for what a run resumes from; in lists, because a writer may sort the keys of objects."""
        return [
            [sample, [list(item) for item in shares.items()] if isinstance(shares, dict) else list(shares)]
            for sample, shares in self.changes.items()
        ]

    @classmethod
    def from_state(cls, state: Sequence[Any]) -> Mixture:
        changes = {sample: shares if isinstance(shares[0], str) else dict(shares) for sample, shares in state}
        return cls(changes.pop(0), changes=changes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        return self.names == other.names and self.changes == other.changes

    def __repr__(self) -> str:
        later = {sample: shares for sample, shares in self.changes.items() if sample}
        return f"Mixture({self.changes[0]}" + (f", changes={later})" if later else ")")


def _shares(mix: Mix) -> Shares:
    if isinstance(mix, (str, os.PathLike)):
        return [os.fspath(mix)]
    names = [os.fspath(name) for name in mix]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        found = f"dataset {twice[0]!r} twice" if twice else "no dataset"
        raise UsageError(f"{found}: a mixture has at least one dataset, and each once. {EXAMPLE}")
    if not isinstance(mix, Mapping):
        return names
    weights = {name: _checked_weight(name, weight) for name, weight in zip(names, mix.values(), strict=True)}
    if not any(weights.values()):
        raise UsageError(f"all weights are 0, of {', '.join(names)}: nothing would ever be drawn. {EXAMPLE}")
    return weights


def _checked_weight(name: str, weight: object) -> float:
    if not isinstance(weight, Real) or not math.isfinite(weight) or weight < 0:
        raise UsageError(f"weight {weight} of {name!r}: a weight is a number of at least 0. {EXAMPLE}")
    return float(weight)


def _checked_sample(sample: int) -> int:
    if sample < 1:
        raise UsageError(
            f"weights changed at sample {sample}: a change comes after the first sample. "
            f"Give the weights that a run starts with as the first argument."
        )
    return int(sample)


def _weights(shares: Shares, sizes: dict[str, int]) -> tuple[float, ...]:
    if isinstance(shares, dict):
        return tuple(shares.get(name, 0.0) for name in sizes)
    return tuple(float(size) if name in shares else 0.0 for name, size in sizes.items())
