"""Headrace's Loader as its guide shows it."""

from headrace import Loader

WORKERS = (0,)
GIVES = "numpy"
ORDER = "chunks"
PACKAGE = "headrace"


def batches(spec, workers):
    for batch in Loader(spec.dataset, seq_len=spec.length, batch_size=spec.rows):
        yield batch.input_ids, batch.targets
