"""nanoGPT's get_batch: random places of a memmap that is opened anew for each batch, as it does against a leak."""

import numpy as np
import torch

WORKERS = (0,)
GIVES = "torch"
ORDER = "anywhere"
PACKAGE = "torch"


def batches(spec, workers):
    while True:
        yield get_batch(spec)


def get_batch(spec):
    data = spec.tokens()
    starts = torch.randint(len(data) - spec.length, (spec.rows,))
    return rows_at(data, starts, spec.length), rows_at(data, starts + 1, spec.length)


def rows_at(data, starts, length):
    return torch.stack([torch.from_numpy(data[i : i + length].astype(np.int64)) for i in starts])
