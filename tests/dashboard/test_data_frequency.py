"""Token frequency: exact where all is counted, spread over everything where it is not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from dataset import EOS, random_documents, write_dataset

from headrace.dashboard import data_frequency
from headrace.dashboard.data_frequency import count_tokens, show_frequency, span_starts
from headrace.dashboard.data_pieces import Pieces
from headrace.errors import StoreError, UsageError
from headrace.storage import TokenStore
from headrace.tokenizers import load_tokenizer

BYTES = Pieces(load_tokenizer("bytes"))


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    write_dataset(tmp_path, [random_documents(seed, 300, vocab_size=200) for seed in range(3)])
    return TokenStore(tmp_path)


def test_a_small_dataset_is_counted_whole(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_frequency, "SPAN", 1000)
    expected = Counter(store.tokens(0, store.total_tokens).tolist())
    found = show_frequency(store, BYTES, count_tokens(store), top=10)
    assert found["counted"] == found["total"] == store.total_tokens
    assert found["never"] == 259 - len(expected)
    assert [row["count"] for row in found["top"]] == [count for _, count in expected.most_common(10)]
    assert all(expected[row["id"]] == row["count"] for row in found["top"])
    first = found["top"][0]
    assert (first["id"], first["text"], first["special"]) == (EOS, "<|eos|>", True)
    assert first["share"] == first["count"] / store.total_tokens
    assert "special" not in found["top"][1]


def test_the_curve_falls_and_is_short(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_frequency, "CURVE", 20)
    found = show_frequency(store, BYTES, count_tokens(store), top=500)
    ranks, counts = found["curve"]["rank"], found["curve"]["count"]
    assert len(ranks) == len(counts) <= 20
    assert (ranks[0], ranks[-1]) == (1, 259 - found["never"])
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == found["top"][0]["count"]
    assert len(found["top"]) == 259 - found["never"]  # no token that was never seen is listed


@pytest.mark.parametrize(("total", "most"), [(0, 10), (1, 10**6), (10**6, 10**5), (10**9, 2 * 10**7), (65_536, 65_536)])
def test_spans_are_spread_over_everything(total: int, most: int) -> None:
    starts = span_starts(total, most)
    assert len(set(starts)) == len(starts)
    assert all(0 <= start < total and start % data_frequency.SPAN == 0 for start in starts)
    assert len(starts) * data_frequency.SPAN <= max(most, data_frequency.SPAN)
    if len(starts) > 20:
        gaps = np.diff(sorted(starts))
        assert gaps.max() - gaps.min() <= data_frequency.SPAN
        first = sorted(starts[:10])  # what is counted when time runs out
        assert np.diff([0, *first, total]).max() < 0.35 * total


def test_a_limit_counts_a_part_and_says_so(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_frequency, "SPAN", 500)
    found = count_tokens(store, most_tokens=2000)
    assert found.counted == found.counts.sum() == 2000 < store.total_tokens
    assert count_tokens(store, most_seconds=0.0).counted == 500  # one span at least


def test_an_id_beyond_the_vocabulary(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[1, 2, 300]]])
    with pytest.raises(StoreError, match=r"holds the id 300, but its vocabulary ends at 258. Run: headrace verify"):
        count_tokens(TokenStore(tmp_path))


@pytest.mark.parametrize("top", [0, -1, 501])
def test_how_many_can_be_listed(store: TokenStore, top: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 500 tokens are listed"):
        show_frequency(store, BYTES, count_tokens(store), top)
