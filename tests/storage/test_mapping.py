"""All shards as one range of addresses: the right tokens, no descriptors, no crash where nothing is mapped."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from dataset import random_documents, write_dataset

from headrace import TokenStore
from headrace.errors import StoreError


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    write_dataset(tmp_path / "data", [random_documents(seed, 200) for seed in range(6)])
    return TokenStore(tmp_path / "data")


def contents(store: TokenStore, shard: int) -> list[int]:
    return np.fromfile(store.path / f"{store.shards[shard].name}.bin", store.dtype).tolist()


def test_each_shard_is_where_its_start_says(store: TokenStore) -> None:
    for index in (3, 0, 5):
        assert store.maps.shard(index).tolist() == contents(store, index)
        start = int(store.maps.starts[index])
        assert store.maps.tokens[start : start + 10].tolist() == contents(store, index)[:10]
    assert store.maps.mapped.tolist() == [True, False, False, True, False, True]


def test_what_is_not_mapped_reads_as_zeros(store: TokenStore) -> None:
    start = int(store.maps.starts[2])
    assert store.maps.tokens[start : start + 10].tolist() == [0] * 10
    store.maps.need(np.array([2, 2, 4]))
    assert store.maps.tokens[start : start + 10].tolist() == contents(store, 2)[:10]


def test_maps_hold_no_descriptors(store: TokenStore) -> None:
    before = len(os.listdir("/dev/fd"))
    store.maps.need(np.arange(6))
    assert len(os.listdir("/dev/fd")) <= before


def test_a_view_outlives_its_store(store: TokenStore) -> None:
    expected = contents(store, 1)
    view = store.shard_tokens(1)
    del store
    gc.collect()
    assert view.tolist() == expected


def test_populating_ends_by_itself(store: TokenStore) -> None:
    store.maps.populate()
    end = time.monotonic() + 30
    while any(thread.name == "headrace-populate" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.005)
    assert store.maps.mapped.all()
    assert store.tokens(0, store.total_tokens).tolist() == [token for i in range(6) for token in contents(store, i)]


def test_populating_leaves_a_missing_shard_to_its_reader(store: TokenStore) -> None:
    (store.path / "shard-00002.bin").unlink()
    store.maps.populate()
    end = time.monotonic() + 30
    while any(thread.name == "headrace-populate" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.005)
    assert store.maps.mapped.tolist() == [True, True, False, True, True, True]
    with pytest.raises(StoreError, match=r"shard-00002.bin is missing"):
        store.shard_tokens(2)


def test_a_cut_shard_is_never_mapped(store: TokenStore) -> None:
    path = store.path / "shard-00004.bin"
    os.truncate(path, 100)
    with pytest.raises(StoreError, match=r"shard-00004.bin holds 50 tokens"):
        store.shard_tokens(4)


def test_goes_to_another_process_without_its_maps(store: TokenStore) -> None:
    store.shard_tokens(0)
    copied = pickle.loads(pickle.dumps(store))
    assert "maps" not in vars(copied)
    assert copied.shard_tokens(3).tolist() == contents(store, 3)
