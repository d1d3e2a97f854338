"""TokenStore gives back exactly what was written, at any chunk size, and refuses what is damaged before it maps it."""

from __future__ import annotations

import itertools
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dataset import random_documents, write_dataset

from headrace.errors import StoreError, UsageError
from headrace.storage import TokenStore


@pytest.fixture(params=["uint16", "int32"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[list[int]]]:
    shards = [random_documents(seed, count) for seed, count in ((1, 30), (2, 1), (3, 55))]
    return tmp_path, write_dataset(tmp_path, shards, dtype=request.param)


def test_documents(written: tuple[Path, list[list[int]]]) -> None:
    folder, documents = written
    store = TokenStore(folder)
    assert store.num_documents == len(documents)
    assert [store.document(i).tolist() for i in range(len(documents))] == documents
    assert store.document(-1).tolist() == documents[-1]
    assert store.document_lengths().tolist() == [len(document) for document in documents]


@pytest.mark.parametrize("chunk_size", [1, 3, 8, 64, 500])
def test_chunks_at_any_size(written: tuple[Path, list[list[int]]], chunk_size: int) -> None:
    folder, documents = written
    tokens = list(itertools.chain.from_iterable(documents))
    store = TokenStore(folder, chunk_size=chunk_size)
    chunks = [chunk.tolist() for chunk in store]
    assert len(chunks) == len(store) == len(tokens) // chunk_size
    assert list(itertools.chain.from_iterable(chunks)) == tokens[: len(chunks) * chunk_size]
    assert store.chunk(0, 5).tolist() == tokens[:5]
    if chunks:
        assert store[-1].tolist() == chunks[-1]


def test_document_starts_come_from_the_index(written: tuple[Path, list[list[int]]]) -> None:
    folder, documents = written
    begins = np.cumsum([0, *map(len, documents)])[:-1]
    store = TokenStore(folder)
    for start, stop in ((0, 50), (7, 300), (100, 101), (0, store.total_tokens)):
        expected = [int(b) - start for b in begins if start <= b < stop]
        assert store.document_starts(start, stop).tolist() == expected


def test_out_of_range(written: tuple[Path, list[list[int]]]) -> None:
    store = TokenStore(written[0])
    for wrong in (lambda: store[len(store)], lambda: store.document(10_000), lambda: store.tokens(5, 10**9)):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(UsageError, match="chunk size 0"):
        TokenStore(written[0], chunk_size=0)


def test_a_split_that_is_not_there(written: tuple[Path, list[list[int]]]) -> None:
    with pytest.raises(UsageError, match=r"has no split 'validation'. It has: train"):
        TokenStore(written[0], split="validation")


def test_tokens_within_a_shard_are_a_view_of_the_map(written: tuple[Path, list[list[int]]]) -> None:
    piece = TokenStore(written[0]).tokens(0, 5)
    base = piece
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, mmap.mmap)
    assert not piece.flags.writeable


def test_decode_uses_the_saved_tokenizer(tmp_path: Path) -> None:
    from headrace.tokenizers import load_tokenizer

    write_dataset(tmp_path, [[[*"naïve".encode(), 256]]])
    load_tokenizer("bytes").save(tmp_path / "tokenizer")
    store = TokenStore(tmp_path)
    assert store.decode(store.document(0)[:-1]) == "naïve"


def test_a_cut_shard_is_refused_before_it_is_mapped(written: tuple[Path, list[list[int]]]) -> None:
    folder, _ = written
    store = TokenStore(folder)
    path = folder / "shard-00002.bin"
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(StoreError, match=r"shard-00002.bin holds .* but the manifest counts"):
        store.tokens(0, store.total_tokens)


def test_a_missing_shard(written: tuple[Path, list[list[int]]]) -> None:
    (written[0] / "shard-00001.bin").unlink()
    with pytest.raises(StoreError, match=r"shard-00001.bin is missing"):
        list(TokenStore(written[0]))


def test_a_cut_index(written: tuple[Path, list[list[int]]]) -> None:
    path = written[0] / "shard-00000.idx"
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(StoreError, match="bytes but 30 documents need"):
        TokenStore(written[0]).document(0)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no dataset at|is not a Headrace dataset"), ("{}", "is not a Headrace manifest"), ("nonsense", "manifest")],
)
def test_not_a_dataset(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "metadata.json").write_text(content)
    with pytest.raises(StoreError, match=message):
        TokenStore(tmp_path)


def test_a_newer_format(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[1, 256]]])
    path = tmp_path / "metadata.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(StoreError, match="pip install --upgrade headrace"):
        TokenStore(tmp_path)


def test_opens_without_torch_and_maps_nothing(tmp_path: Path) -> None:
    write_dataset(tmp_path, [random_documents(i, 3) for i in range(200)])
    code = f"""
import sys
sys.modules["torch"] = None
from headrace import TokenStore
store = TokenStore({str(tmp_path)!r})
assert "maps" not in vars(store) and len(store.shards) == 200
print(store.num_documents)
assert "pyarrow" not in sys.modules and "tokenizers" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "600"), done.stderr
