"""How maps are read, and what the loader reports of its waits."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from dataset import random_documents, write_dataset

from headrace import Loader
from headrace.errors import UsageError
from headrace.loading import buffers, memory, waits
from headrace.storage import read_metadata
from headrace.telemetry import EventLog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data", [random_documents(seed, 60) for seed in range(3)])
    return tmp_path / "data"


@pytest.mark.parametrize("choice", ["auto", "random", "populate", "normal"])
def test_every_way_to_read_gives_the_same(folder: Path, choice: str) -> None:
    loader = Loader(folder, seq_len=16, batch_size=4, memory=choice)
    plain = Loader(folder, seq_len=16, batch_size=4)
    assert [next(loader).tokens.tolist() for _ in range(20)] == [next(plain).tokens.tolist() for _ in range(20)]
    with pytest.raises(UsageError, match="one of auto, random, populate, normal"):
        Loader(folder, seq_len=16, batch_size=4, memory="all")


def test_what_does_not_fit_is_read_row_by_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(shard.bytes for shard in read_metadata(folder).shards)
    monkeypatch.setattr(memory, "available_memory", lambda: size * 2)
    assert memory.choose_access([read_metadata(folder)]) == "whole"
    monkeypatch.setattr(memory, "available_memory", lambda: size * 2 - 1)
    assert memory.choose_access([read_metadata(folder)]) == "random"


def test_a_container_may_have_less_than_the_machine(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.stat").write_text("anon 400000\nfile 500000\n")
    assert memory._container(tmp_path) == 600_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container(tmp_path) is None
    assert 0 < memory.available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_waits_go_to_the_event_log(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "EVERY", 0.0)
    log = EventLog(tmp_path / "events.jsonl")
    loader = Loader(folder, seq_len=16, batch_size=4, events=log)
    for _ in range(5):
        next(loader)
        time.sleep(0.001)
    log.close()
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in events] == ["loader"] * 5
    assert sum(event["tokens"] for event in events) == 5 * 4 * 16
    assert sum(event["data_wait"] for event in events) == pytest.approx(loader.wait_statistics().wait_seconds, abs=1e-4)
    assert max(event["max_wait"] for event in events) == pytest.approx(
        loader.wait_statistics().max_wait_seconds, abs=1e-5
    )


def test_several_batches_may_be_held(folder: Path) -> None:
    loader = Loader(folder, seq_len=16, batch_size=4, prefetch=2)
    loader.hold(3)
    expected = [loader.batch_at(step).tokens.tolist() for step in range(30)]
    held, seen = [], []
    for _ in range(30):
        held.append(loader.take())
        if len(held) == 3:
            time.sleep(0.0005)  # the thread fills all it may
            seen.append(held[0].tokens.tolist())
            loader.give_back(held.pop(0))
    assert seen + [batch.tokens.tolist() for batch in held] == expected


@pytest.mark.parametrize("rows", [1, 64])
def test_buffers_small_and_large_are_zeros_and_their_own(rows: int) -> None:
    shape = (rows, 4097)
    first, second = (buffers.allocate(shape, np.dtype("int64"), pin=False) for _ in range(2))
    assert first.shape == shape
    assert not first.any()
    first[:] = 7
    assert not second.any()
    if rows == 64:
        assert first.ctypes.data % buffers.HUGE_PAGE == 0
