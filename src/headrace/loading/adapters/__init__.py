"""The loader's batches in other libraries' loops, in its own order; one file for each library."""

from typing import Any

from headrace.loading.adapters.dataset import TorchDataset
from headrace.loading.adapters.trainer import TrainerDataset

__all__ = ["LightningData", "TorchDataset", "TrainerDataset"]


def __getattr__(name: str) -> Any:
    """LightningData on first use, because Lightning is optional and slow to import."""
    if name == "LightningData":
        from headrace.loading.adapters.lightning import LightningData

        return LightningData
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
