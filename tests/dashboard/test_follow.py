from __future__ import annotations

from pathlib import Path

import pytest

from headrace.dashboard.follow import Follower, Replaced, read_head, read_tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"t":1794794404.574,"kind":"run"}\n{"kind":"step"}\n')
    return path


def add(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def test_every_line_is_given_once(log: Path) -> None:
    follower = Follower(log)
    assert follower.read() == log.read_bytes()
    assert follower.read() == b""
    add(log, b"new\n")
    assert follower.read() == b"new\n"


def test_a_cut_line_is_waited_for(log: Path) -> None:
    follower = Follower(log)
    follower.read()
    add(log, b'{"kind":')
    assert follower.read() == b""
    add(log, b'"end"}\n{"')
    assert follower.read() == b'{"kind":"end"}\n'
    assert follower.offset == log.stat().st_size - 2


def test_slices_end_with_lines(log: Path) -> None:
    follower, found = Follower(log), []
    while chunk := follower.read(limit=36):
        found.append(chunk)
    assert found == [b'{"t":1794794404.574,"kind":"run"}\n', b'{"kind":"step"}\n']


def test_a_line_longer_than_a_slice_is_read_whole(log: Path) -> None:
    add(log, b"x" * 1000 + b"\n")
    follower = Follower(log, offset=log.stat().st_size - 1001)
    assert len(follower.read(limit=10)) == 1001


def test_no_file_yet_is_nothing_yet(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "events.jsonl")
    assert follower.read() == b""
    (tmp_path / "events.jsonl").write_bytes(b"one\n")
    assert follower.read() == b"one\n"


@pytest.mark.parametrize(
    "content",
    [
        b'{"t":1794794404.574,"kind":"run"}\n',  # cut
        b'{"t":1794799999.999,"kind":"run"}\n{"kind":"step"}\n{"kind":"step"}\n',  # another log
        b'{"t":1794794404.574,"kind":"run"}\n{"kind":"else"}\n{"kind":"step"}\n',  # begins alike, and goes on otherwise
    ],
)
def test_another_file_is_noticed(log: Path, content: bytes) -> None:
    follower = Follower(log)
    follower.read()
    log.write_bytes(content)
    with pytest.raises(Replaced):
        follower.read()


def test_a_file_that_is_gone_is_noticed(log: Path) -> None:
    follower = Follower(log)
    follower.read()
    log.unlink()
    with pytest.raises(Replaced):
        follower.read()


def test_ends_hold_whole_lines(log: Path) -> None:
    add(log, b"third\ncut")
    assert read_head(log, 40) == b'{"t":1794794404.574,"kind":"run"}\n'
    assert read_tail(log, 12) == (b"third\n", log.stat().st_size - 9)
    assert read_tail(log, 1000) == (log.read_bytes()[:-3], 0)
    assert read_tail(log, 2) == (b"", log.stat().st_size - 2)
