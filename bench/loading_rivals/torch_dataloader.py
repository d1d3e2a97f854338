"""torch's DataLoader over a memmap: random order, default collation, workers that stay."""

from torch.utils.data import DataLoader

from loading_rivals.memmap_chunks import MemmapChunks, endless

WORKERS = (0, 2)
GIVES = "torch"
ORDER = "chunks"
PACKAGE = "torch"


def batches(spec, workers):
    data = MemmapChunks(spec)
    stay = workers > 0  # a new epoch starts no new processes
    options = {"shuffle": True, "drop_last": True, "num_workers": workers, "persistent_workers": stay}
    yield from endless(DataLoader(data, batch_size=spec.rows, **options))
