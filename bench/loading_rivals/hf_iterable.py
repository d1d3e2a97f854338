"""Hugging Face datasets, iterable: the same Arrow folder in 64 parts, shuffled through a buffer of 1,000 rows."""

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
    whole = load_from_disk(str(spec.own / "arrow"))
    data = whole.to_iterable_dataset(num_shards=64).shuffle(seed=0, buffer_size=1000).with_format("torch")
    options = {"drop_last": True, "num_workers": workers, "persistent_workers": workers > 0}
    yield from map(split, endless(DataLoader(data, batch_size=spec.rows, **options)))
