"""Raw text as what a loader draws from: the same questions as prepared datasets answer, where text has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.loading.boundaries import Boundaries
from headrace.loading.live.feed import LiveFeed
from headrace.loading.live.state import differences, identity_of
from headrace.loading.live.text import LiveText
from headrace.loading.mixture import Mix, Mixture
from headrace.loading.sampler import Progress

PREPARE = "Prepare the text first: headrace prepare SOURCE --out DIR"


class LiveData:
    """Text has a position, not an arithmetic: it is known for the batches given out lately, and in a saved state."""

    def __init__(self, live: LiveText, *, seq_len: int, batch_size: int, seed: int, shuffle: bool) -> None:
        self.live = live
        self._settings: dict[str, Any] = {
            "seq_len": seq_len,
            "batch_size": batch_size,
            "seed": seed,
            "shuffle": shuffle,
        }
        self._saved: dict[str, Any] | None = None
        self._feed: LiveFeed | None = None

    @property
    def vocab_size(self) -> int:
        return self.live.vocab_size

    @property
    def chunks(self) -> int:
        raise UsageError(f"How many chunks {self.live.name} has is not known before it is tokenized. {PREPARE}")

    @property
    def mixture(self) -> Mixture:
        raise UsageError(f"{self.live.name} is live text, which is not mixed. {PREPARE}")

    def has_split(self, split: str) -> bool:
        return False

    def progress(self, step: int) -> list[Progress]:
        raise UsageError(f"How much of {self.live.name} has been read is not known in chunks. {PREPARE}")

    def change(self, step: int, mix: Mix) -> None:
        raise UsageError(f"{self.live.name} is live text, which is not mixed. {PREPARE}")

    def start(self, step: int, share: slice, buffers: Sequence[NDArray[Any]], *, with_boundaries: bool) -> LiveFeed:
        self._feed = LiveFeed(
            self.live,
            **self._settings,
            share=share,
            buffers=buffers,
            state=self._state_of(step),
            with_boundaries=with_boundaries,
        )
        return self._feed

    def gather(self, step: int, share: slice, out: NDArray[Any], *, with_boundaries: bool) -> Boundaries | None:
        raise UsageError(f"Batch {step} of live text cannot be had before those in front of it. {PREPARE}")

    def state(self, step: int) -> dict[str, Any]:
        """Where the batch before this step ends, and what the text and the settings are known by."""
        found = self._state_of(step)
        return found if found is not None else self._identity()

    def differences(self, state: dict[str, Any]) -> list[str]:
        return differences(self._identity(), state)

    def load(self, state: dict[str, Any]) -> None:
        self._saved, self._feed = (state if state["step"] else None), None

    def _state_of(self, step: int) -> dict[str, Any] | None:
        """None: the beginning."""
        if self._feed is not None and (found := self._feed.state_after(step)) is not None:
            return found
        if self._saved is not None and self._saved["step"] == step:
            return self._saved
        if step:
            raise UsageError(f"Where batch {step:,} of live text ends is no longer known; the last ones are.")
        return None

    def _identity(self) -> dict[str, Any]:
        return identity_of(self.live, **self._settings)
