"""The index is Megatron's to the byte."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from headrace.storage.index import dtype_for, encode_index, read_lengths


@pytest.mark.parametrize(("dtype", "code"), [("uint16", 8), ("int32", 4)])
def test_layout(dtype: str, code: int) -> None:
    size = np.dtype(dtype).itemsize
    expected = (
        b"MMIDIDX\x00\x00"
        + struct.pack("<Q", 1)
        + struct.pack("<B", code)
        + struct.pack("<QQ", 3, 4)
        + struct.pack("<3i", 5, 0, 2)
        + struct.pack("<3q", 0, 5 * size, 5 * size)
        + struct.pack("<4q", 0, 1, 2, 3)
    )
    assert encode_index(np.array([5, 0, 2], np.int32), np.dtype(dtype)) == expected


def test_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(encode_index(np.array([5, 0, 2], np.int32), np.dtype("uint16")))
    assert read_lengths(path, 3, np.dtype("uint16")).tolist() == [5, 0, 2]


def test_pointers_do_not_overflow_32_bits() -> None:
    data = encode_index(np.array([2**31 - 1, 2**31 - 1, 7], np.int32), np.dtype("int32"))
    pointers = np.frombuffer(data, "<i8", 3, 9 + 8 + 1 + 16 + 12)
    assert pointers.tolist() == [0, 4 * (2**31 - 1), 8 * (2**31 - 1)]


@pytest.mark.parametrize(("vocab_size", "name"), [(259, "uint16"), (65_499, "uint16"), (65_500, "int32")])
def test_dtype(vocab_size: int, name: str) -> None:
    assert dtype_for(vocab_size).name == name


def test_megatron_opens_it(tmp_path: Path) -> None:
    """Megatron-core's own reader, where it is installed (bench/rivals has it always)."""
    indexed_dataset = pytest.importorskip("megatron.core.datasets.indexed_dataset", reason="no megatron-core here")
    documents = [[1, 2, 3], [], [4]]
    (tmp_path / "a.bin").write_bytes(np.array([1, 2, 3, 4], np.uint16).tobytes())
    (tmp_path / "a.idx").write_bytes(encode_index(np.array([3, 0, 1], np.int32), np.dtype("uint16")))
    dataset = indexed_dataset.IndexedDataset(str(tmp_path / "a"))
    assert [dataset[i].tolist() for i in range(len(dataset))] == documents
