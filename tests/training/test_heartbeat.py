"""Ranks that watch each other: here as threads of one process with a store in memory."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch.distributed as dist

from headrace.errors import Interrupted, TrainingFailed
from headrace.training import heartbeat
from headrace.training.heartbeat import Heartbeat

LONGEST = 60.0  # seconds until a test that hangs gives up


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "POLL", 0.01)
    monkeypatch.setattr(heartbeat, "PATIENCE", 40)


@pytest.fixture
def store() -> Any:
    return dist.HashStore()  # type: ignore[attr-defined]


@pytest.fixture
def pair(store: Any) -> Iterator[list[Heartbeat]]:
    found = [Heartbeat(store, rank, 2) for rank in range(2)]
    yield found
    for beat in found:
        beat.close()


def start(*beats: Heartbeat) -> None:
    for beat in beats:
        beat.start()


def test_all_ranks_stop_after_the_same_step(pair: list[Heartbeat]) -> None:
    start(*pair)
    exchange = threading.Barrier(2, timeout=LONGEST)  # no step ends before the other rank has come to it
    steps = [0, 0]

    def train(rank: int) -> None:
        while not pair[rank].stops(steps[rank], "SIGTERM" if rank == 1 and steps[rank] >= 30 else None):
            exchange.wait()
            steps[rank] += 1

    threads = [threading.Thread(target=train, args=(rank,), daemon=True) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST)
    assert not any(thread.is_alive() for thread in threads)
    assert steps[0] == steps[1] >= 30
    assert [beat.stopped_by for beat in pair] == ["SIGTERM on rank 1"] * 2
    assert pair[0].agreed(Interrupted("stopped"))


def test_a_rank_that_fails_tells_why(pair: list[Heartbeat]) -> None:
    start(*pair)
    pair[0].close(ValueError("the disk is on fire\nand more"))
    cause = pair[1].cause()
    assert cause is not None
    assert cause.startswith("Rank 0 (process ")
    assert "failed: the disk is on fire The checkpoints are kept." in cause
    with pytest.raises(TrainingFailed, match="disk is on fire"):
        pair[1].stops(3, None)


def test_a_rank_without_a_sign_of_life_is_named(pair: list[Heartbeat]) -> None:
    start(pair[0])
    cause = pair[0].cause()
    assert cause is not None
    assert "Rank 1" in cause
    assert "no sign of life" in cause


def test_a_dead_process_is_found_before_its_silence(pair: list[Heartbeat], store: Any) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    _, namespace, host = store.get("who/1").decode().split(" ", 2)
    store.set("who/1", f"{ended.pid} {namespace} {host}")
    start(pair[0])
    assert pair[0].cause() == f"Rank 1 (process {ended.pid} on {host}) died. {heartbeat.GO_ON}"


def test_a_dead_process_elsewhere_cannot_be_seen(pair: list[Heartbeat], store: Any) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    store.set("who/1", f"{ended.pid} - another-host")
    start(*pair)
    assert pair[0].cause() is None


def test_who_leaves_is_not_dead(pair: list[Heartbeat]) -> None:
    start(*pair)
    pair[1].close()
    assert pair[0].cause() is None
    assert not pair[0].stops(0, None)


def test_a_training_thread_that_hangs_is_ended(
    pair: list[Heartbeat], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    left = threading.Event()
    monkeypatch.setattr(heartbeat, "GRACE", 0.01)
    monkeypatch.setattr(heartbeat.os, "_exit", lambda code: (codes.append(code), left.set()))
    start(pair[0])
    assert left.wait(LONGEST)
    assert codes == [1]
    assert "error: Rank 1 (process " in capfd.readouterr().err
