"""Hugging Face datasets, map style: an Arrow folder, torch format, torch's DataLoader."""

from datasets import load_from_disk
from torch.utils.data import DataLoader

from loading_rivals.hf_arrow import convert, split
from loading_rivals.memmap_chunks import endless

__all__ = ["convert"]
WORKERS = (0, 2)
GIVES = "torch"
ORDER = "chunks"
PACKAGE = "datasets"


def batches(spec, workers):
    data = load_from_disk(str(spec.own / "arrow")).with_format("torch")
    options = {"shuffle": True, "drop_last": True, "num_workers": workers, "persistent_workers": workers > 0}
    yield from map(split, endless(DataLoader(data, batch_size=spec.rows, **options)))
