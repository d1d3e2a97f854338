"""torchdata's StatefulDataLoader over a memmap: the DataLoader whose place can be saved."""

from torchdata.stateful_dataloader import StatefulDataLoader

from loading_rivals.memmap_chunks import MemmapChunks, endless

WORKERS = (0, 2)
GIVES = "torch"
ORDER = "chunks"
PACKAGE = "torchdata"


def batches(spec, workers):
    data = MemmapChunks(spec)
    options = {"shuffle": True, "drop_last": True, "num_workers": workers, "persistent_workers": workers > 0}
    yield from endless(StatefulDataLoader(data, batch_size=spec.rows, **options))
