"""The limit: inputs and targets that are int64 already, copied into two buffers that are used again."""

import numpy as np

WORKERS = (0,)
GIVES = "numpy"
ORDER = None  # no tokens of the dataset
PACKAGE = "numpy"


def batches(spec, workers):
    source = np.random.default_rng(0).integers(0, 30_000, (2, spec.rows, spec.length))
    inputs, targets = np.zeros((2, spec.rows, spec.length), np.int64)
    while True:
        np.copyto(inputs, source[0])
        np.copyto(targets, source[1])
        yield inputs, targets
