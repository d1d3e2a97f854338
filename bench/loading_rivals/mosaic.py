"""MosaicML Streaming: MDS files of fixed-size arrays, its own shuffle, torch's DataLoader."""

import numpy as np
import torch
from torch.utils.data import DataLoader

from loading_rivals.memmap_chunks import endless
from loading_rivals.torchvision_operators import define_missing_operators

define_missing_operators()

from streaming import MDSWriter, StreamingDataset  # noqa: E402 - after the operators that its import asks for
from streaming.base.util import clean_stale_shared_memory  # noqa: E402

WORKERS = (0, 2)
GIVES = "torch"
ORDER = "chunks"
PACKAGE = "mosaicml-streaming"


def convert(spec):
    columns = {"tokens": f"ndarray:{spec.dtype}:{spec.length + 1}"}
    with MDSWriter(out=str(spec.own / "mds"), columns=columns) as out:
        for index in range(spec.chunks()):
            out.write({"tokens": np.asarray(spec.chunk(index))})


class Rows(StreamingDataset):
    def __getitem__(self, index):
        row = super().__getitem__(index)["tokens"].astype(np.int64)
        return torch.from_numpy(row[:-1]), torch.from_numpy(row[1:])


def batches(spec, workers):
    clean_stale_shared_memory()  # its documented remedy for what a killed run leaves behind
    data = Rows(local=str(spec.own / "mds"), shuffle=True, batch_size=spec.rows)
    options = {"drop_last": True, "num_workers": workers, "persistent_workers": workers > 0}
    yield from endless(DataLoader(data, batch_size=spec.rows, **options))
