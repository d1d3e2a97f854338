"""litdata: chunks written by optimize() with a TokensLoader, read by a StreamingDataLoader, widened as litgpt does."""

import numpy as np
import torch
from litdata import StreamingDataLoader, StreamingDataset, TokensLoader, optimize

from loading_rivals.memmap_chunks import endless

WORKERS = (0, 2)
GIVES = "torch"
ORDER = "anywhere"  # its blocks follow on each other inside one of its files, and take length + 1 tokens each
PACKAGE = "litdata"
CHUNK_TOKENS = 1 << 23  # of uint16: 16 MB a file; its guide has 64 MB of int32 tokens for far larger data


def convert(spec):
    tokens = len(spec.tokens())
    fitting = max(1, min(CHUNK_TOKENS, tokens) // (spec.length + 1)) * (spec.length + 1)
    pieces = [(spec, start, min(start + fitting, tokens)) for start in range(0, tokens, fitting)]
    optimize(
        fn=piece,
        inputs=pieces,
        output_dir=str(spec.own / "optimized"),
        chunk_size=fitting,
        item_loader=TokensLoader(),
        num_workers=1,
        reorder_files=False,
        verbose=False,
    )


def piece(what):
    spec, start, stop = what
    yield torch.from_numpy(np.array(spec.tokens()[start:stop]))


def batches(spec, workers):
    blocks = TokensLoader(block_size=spec.length + 1)
    data = StreamingDataset(str(spec.own / "optimized"), item_loader=blocks, shuffle=True, drop_last=True)
    loader = StreamingDataLoader(data, batch_size=spec.rows, num_workers=workers)
    for rows in endless(loader):
        yield rows[:, :-1].long(), rows[:, 1:].long()
