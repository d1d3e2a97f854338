"""The histogram of lengths is exact: compared with numpy over all lengths at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dataset import random_documents, write_dataset

from headrace.dashboard import data_lengths
from headrace.dashboard.data_lengths import length_statistics, log_edges
from headrace.storage import TokenStore


def test_as_numpy_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_lengths, "LONG", 64)  # so that there are documents on both sides of it
    write_dataset(tmp_path, [random_documents(seed, 200, longest=40 * (seed + 1)) for seed in range(4)])
    store = TokenStore(tmp_path)
    lengths = store.document_lengths()
    found = length_statistics(store)
    counts, _ = np.histogram(lengths, found["edges"])
    assert found["counts"] == counts.tolist()
    assert sum(found["counts"]) == found["documents"] == 800
    expected = np.percentile(lengths, data_lengths.PERCENTILES).astype(int).tolist()
    assert list(found["percentiles"].values()) == expected
    assert (found["shortest"], found["longest"]) == (lengths.min(), lengths.max())
    assert found["mean"] == pytest.approx(lengths.mean())


def test_all_documents_of_one_length(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[1, 2, 256]] * 7])
    found = length_statistics(TokenStore(tmp_path))
    assert (found["edges"], found["counts"]) == ([3, 4], [7])
    assert set(found["percentiles"].values()) == {3}


def test_only_long_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_lengths, "LONG", 4)
    write_dataset(tmp_path, [[[1] * 9, [2] * 30]])
    found = length_statistics(TokenStore(tmp_path))
    assert sum(found["counts"]) == 2
    assert (found["shortest"], found["longest"], found["percentiles"]["p50"]) == (9, 30, 19)


@pytest.mark.parametrize(("shortest", "longest"), [(0, 0), (0, 1), (1, 1), (1, 3), (5, 100), (1, 10**6), (700, 701)])
def test_edges_grow_and_cover_all(shortest: int, longest: int) -> None:
    edges = log_edges(shortest, longest)
    assert edges[0] == shortest
    assert edges[-1] == longest + 1
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= 2 * np.log2(longest + 2) + 4
