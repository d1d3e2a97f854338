"""A small text in several files, and ways to read it live, for the tests of live feeds."""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.loading.live import LiveFeed, LiveText, filler, walk

SEQ_LEN, BATCH_SIZE = 16, 4
WINDOW = 10 * SEQ_LEN


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small text has many units and blocks."""
    monkeypatch.setattr(walk, "UNIT_BYTES", 700)
    monkeypatch.setattr(filler, "BLOCK_TOKENS", 5 * SEQ_LEN)


def documents(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    words = ["water", "wheel", "mill ", "éclair", "日本", "def f(x):\n    return x\n", "<|endoftext|>", "<|eos|>", "\n"]
    return [" ".join(rng.choices(words, k=rng.randrange(40))) for _ in range(count)]


def write_jsonl(path: Path, texts: Sequence[str]) -> None:
    data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_parquet(path: Path, texts: Sequence[str]) -> None:
    pq.write_table(pa.table({"text": texts}), path, row_group_size=7)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Several files, one of them compressed, with empty documents among the others."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", documents(1, 24))
    write_jsonl(folder / "b.jsonl.gz", documents(2, 12))
    write_jsonl(folder / "c.jsonl", ["", *documents(3, 10), ""])
    return folder


def open_feed(live: LiveText, **more: Any) -> LiveFeed:
    return LiveFeed(live, **{"seq_len": SEQ_LEN, "batch_size": BATCH_SIZE, "seed": 5, **more})


def take(opened: LiveFeed, count: int) -> list[list[list[int]]]:
    """Batches as lists: copies, because the feed uses its buffers again."""
    return [opened.next().tokens.tolist() for _ in range(count)]


def batches(live: LiveText, count: int, **more: Any) -> list[list[list[int]]]:
    opened = open_feed(live, **more)
    found = take(opened, count)
    opened.stop()
    return found


def live_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("headrace-live")]


def no_threads_left() -> None:
    end = time.monotonic() + 30
    while live_threads():
        assert time.monotonic() < end, f"still there: {live_threads()}"
        time.sleep(0.01)
