"""verify finds every kind of damage, and says where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dataset import random_documents, write_dataset

from headrace.storage import verify
from headrace.tokenizers import load_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path, [random_documents(1, 40), random_documents(2, 20)])
    load_tokenizer("bytes").save(tmp_path / "tokenizer")
    return tmp_path


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_a_whole_dataset(folder: Path) -> None:
    seen = []
    report = verify(folder, seen.append)
    assert report.ok
    assert (report.shards, report.documents, len(seen)) == (2, 60, 2)


@pytest.mark.parametrize("suffix", ["bin", "idx"])
def test_every_flipped_bit_is_found(folder: Path, suffix: str) -> None:
    path = folder / f"shard-00001.{suffix}"
    bits = path.stat().st_size * 8
    for bit in range(0, bits, max(1, bits // 97)):
        flip(path, bit)
        report = verify(folder)
        assert report.problems, f"bit {bit}"
        assert all("shard-00001" in problem for problem in report.problems)
        flip(path, bit)
    assert verify(folder).ok


def test_a_cut_file(folder: Path) -> None:
    os.truncate(folder / "shard-00000.bin", 10)
    assert "shard-00000.bin has 10 bytes" in verify(folder).problems[0]


def test_missing_files(folder: Path) -> None:
    (folder / "shard-00000.bin").unlink()
    (folder / "shard-00001.idx").unlink()
    problems = verify(folder).problems
    assert "shard-00000.bin is missing" in problems[0]
    assert "shard-00001.idx is missing" in problems[1]


def test_wrong_counts_in_the_manifest(folder: Path) -> None:
    path = folder / "metadata.json"
    path.write_text(path.read_text().replace('"documents": 60', '"documents": 61', 1))
    assert verify(folder).problems == ["metadata.json says documents 61, its shards say 60"]


def test_an_id_beyond_the_vocabulary(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[1, 2, 999, 256]]])
    load_tokenizer("bytes").save(tmp_path / "tokenizer")
    assert "holds id 999, but the vocabulary has 259" in verify(tmp_path).problems[0]


def test_a_shard_that_is_not_listed(folder: Path) -> None:
    (folder / "shard-00007.bin").write_bytes(b"")
    assert verify(folder).problems == ["shard-00007.bin/.idx is not in the manifest"]
