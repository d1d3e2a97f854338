"""The `.idx` file of Megatron-LM's IndexedDataset, one sequence per document.

MMIDIDX\\0\\0 | <Q version 1 | <B dtype code | <Q sequences | <Q len(doc_idx) | int32 lengths | int64 byte pointers |
int64 doc_idx
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import StoreError

MAGIC = b"MMIDIDX\x00\x00"
HEADER = struct.Struct("<9sQBQQ")
DTYPES: dict[int, type[np.integer[Any]]] = {4: np.int32, 8: np.uint16}
CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
UINT16_VOCABULARY = 65_500  # Megatron's own bound for two-byte ids


def dtype_for(vocab_size: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if vocab_size < UINT16_VOCABULARY else np.int32)


def encode_index(lengths: NDArray[np.int32], dtype: np.dtype[Any]) -> bytes:
    """The bytes of an index for documents of these lengths in tokens."""
    count = len(lengths)
    ends = np.cumsum(lengths, dtype=np.int64) * dtype.itemsize
    pointers = np.zeros(count, np.int64)
    pointers[1:] = ends[:-1]
    header = HEADER.pack(MAGIC, 1, CODES[dtype], count, count + 1)
    documents = np.arange(count + 1, dtype=np.int64)
    return b"".join((header, lengths.astype("<i4").tobytes(), pointers.tobytes(), documents.tobytes()))


def read_lengths(path: Path, documents: int, dtype: np.dtype[Any]) -> NDArray[np.int32]:
    """Document lengths, as a map of the file, after its header and size have been checked."""
    check_header(path, documents, dtype)
    return np.memmap(path, np.dtype("<i4"), "r", HEADER.size, (documents,)) if documents else np.zeros(0, np.int32)


def check_header(path: Path, documents: int, dtype: np.dtype[Any]) -> None:
    try:
        with open(path, "rb") as file:
            head = file.read(HEADER.size)
            size = file.seek(0, 2)
    except FileNotFoundError as error:
        raise StoreError(f"{path} is missing. {AGAIN}") from error
    if len(head) < HEADER.size or not head.startswith(MAGIC):
        raise StoreError(f"{path} does not begin like a Megatron index. {AGAIN}")
    _, version, code, sequences, entries = HEADER.unpack(head)
    if (version, DTYPES.get(code)) != (1, dtype.type):
        raise StoreError(f"{path} has version {version} and dtype code {code}; expected 1 and {CODES[dtype]}. {AGAIN}")
    if sequences != documents or entries != documents + 1:
        raise StoreError(f"{path.name} counts {sequences:,} documents but the manifest {documents:,}. {AGAIN}")
    expected = HEADER.size + documents * 12 + (documents + 1) * 8
    if size != expected:
        raise StoreError(f"{path.name} has {size:,} bytes but {documents:,} documents need {expected:,}. {AGAIN}")


AGAIN = "Run the same 'headrace prepare' with --force to write the dataset again, or restore the file."
