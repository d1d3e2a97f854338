"""grain: MapDataset over a memmap source, shuffled and batched, with its default 16 read threads."""

import grain
import numpy as np

WORKERS = (0, 2)
GIVES = "numpy"
ORDER = "chunks"
PACKAGE = "grain"


class MemmapSource:
    def __init__(self, spec):
        self.tokens, self.length, self.count = spec.tokens(), spec.length, spec.chunks()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        start = int(index) * self.length
        row = self.tokens[start : start + self.length + 1].astype(np.int64)
        return {"inputs": row[:-1], "targets": row[1:]}


def batches(spec, workers):
    data = grain.MapDataset.source(MemmapSource(spec)).shuffle(seed=0).repeat()
    data = data.batch(spec.rows, drop_remainder=True).to_iter_dataset()
    if workers:
        data = data.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    for batch in data:
        yield batch["inputs"], batch["targets"]
