"""Which checkpoints may go: all but the newest, the best and the one just written."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.training.checkpoint_manifest import Manifest


def expired(manifests: Sequence[Manifest], written: int, *, keep_last: int, keep_best: int, metric: str) -> list[int]:
    """The steps to remove. The one just written is kept even when older runs left later steps behind."""
    steps = sorted(manifest.step for manifest in manifests)
    best = {manifest.step for manifest in best_first(manifests, metric)[:keep_best]}
    kept = {written, *steps[-keep_last:], *best}
    return [step for step in steps if step not in kept]


def best_first(manifests: Sequence[Manifest], metric: str) -> list[Manifest]:
    """By the metric, lower is better, the later of equals first; who has no finite value is left out."""
    rated = [
        (value, -manifest.step, manifest)
        for manifest in manifests
        if (value := manifest.metrics.get(metric)) is not None
    ]
    return [manifest for _, _, manifest in sorted(rated, key=lambda entry: entry[:2])]
