"""A lock is seen without being touched, and what cannot be known is not guessed."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

import pytest

from headrace import locks
from headrace.locks import Locks


@pytest.mark.skipif(not locks.LISTED.exists(), reason="the kernel lists no locks here")
def test_held_and_let_go(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert Locks().holds(lock) is None
    with open(lock, "a+") as holder:
        holder.write(f"process {os.getpid()} on {socket.gethostname()}")
        holder.flush()
        assert Locks().holds(lock) is False
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert Locks().holds(lock) is True
        fcntl.flock(holder, fcntl.LOCK_UN)
        assert Locks().holds(lock) is False


def test_nobody_can_tell_from_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock"
    lock.write_text("process 1 on another-machine")
    assert Locks().holds(lock) is None
    lock.write_text(f"process 1 on {socket.gethostname()}")
    monkeypatch.setattr(locks, "LISTED", tmp_path / "missing")
    assert Locks().holds(lock) is None
