"""Opens every shard of a dataset folder with Megatron's IndexedDataset, and can compare it with a plain numpy read."""

import argparse
import itertools
import json
import struct
import sys
from pathlib import Path

MAGIC = b"MMIDIDX\x00\x00"
DTYPES = {4: "<i4", 8: "<u2"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds shard-*.idx and shard-*.bin")
    parser.add_argument("--compare", action="store_true", help="compare every document with a numpy read of the files")
    return parser.parse_args()


def read_plain(prefix):
    """A list of documents, read from the two files by their published layout and nothing of Megatron's."""
    import numpy as np

    index = prefix.with_suffix(".idx").read_bytes()
    version, code, sequences, bounds = struct.unpack_from("<QBQQ", index, len(MAGIC))
    if not index.startswith(MAGIC) or version != 1 or code not in DTYPES:
        sys.exit(f"{prefix}.idx: not an index of version 1 with int32 or uint16 tokens")
    dtype, at = np.dtype(DTYPES[code]), len(MAGIC) + struct.calcsize("<QBQQ")
    if len(index) != at + 12 * sequences + 8 * bounds:
        sys.exit(f"{prefix}.idx: {len(index)} bytes, but {sequences} sequences and {bounds} bounds need another size")
    lengths = np.frombuffer(index, "<i4", sequences, at)
    pointers = np.frombuffer(index, "<i8", sequences, at + lengths.nbytes)
    documents = np.frombuffer(index, "<i8", bounds, at + lengths.nbytes + pointers.nbytes)
    tokens = np.fromfile(prefix.with_suffix(".bin"), dtype)
    if len(tokens) != lengths.sum():
        sys.exit(f"{prefix}.bin: {len(tokens)} tokens, but the index counts {lengths.sum()}")
    starts = pointers // dtype.itemsize
    parts = [tokens[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    return [np.concatenate([tokens[:0], *parts[a:b]]) for a, b in itertools.pairwise(documents)]


def read_megatron(prefix):
    """A generator of documents as Megatron's reader gives them."""
    import numpy as np
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    dataset = IndexedDataset(str(prefix))
    bounds = dataset.document_indices
    for start, stop in itertools.pairwise(bounds):
        parts = [dataset[int(i)] for i in range(start, stop)]
        yield np.concatenate(parts) if parts else np.empty(0, dataset.index.dtype)


def check_shard(prefix, compare):
    """Documents and tokens of a shard; ends the program with code 1 at the first difference."""
    import numpy as np

    plain = read_plain(prefix) if compare else None
    documents = tokens = 0
    for document in read_megatron(prefix):
        if compare and (documents >= len(plain) or not np.array_equal(document, plain[documents])):
            sys.exit(f"{prefix}: document {documents} differs between Megatron and the plain read")
        documents, tokens = documents + 1, tokens + len(document)
    if compare and documents != len(plain):
        sys.exit(f"{prefix}: Megatron gives {documents} documents, the plain read {len(plain)}")
    return documents, tokens


def main():
    args = parse_arguments()
    prefixes = [path.with_suffix("") for path in sorted(args.folder.glob("shard-*.idx"))]
    if not prefixes:
        sys.exit(f"{args.folder} holds no shard-*.idx")
    counts = [check_shard(prefix, args.compare) for prefix in prefixes]
    documents, tokens = (sum(column) for column in zip(*counts, strict=True))
    print(json.dumps({"shards": len(prefixes), "documents": documents, "tokens": tokens}))


if __name__ == "__main__":
    main()
