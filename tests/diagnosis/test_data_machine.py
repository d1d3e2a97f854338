"""The page cache, the mounts and the limits of a process, from this machine and from made-up tables."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from headrace.diagnosis.data_cache import PageCache
from headrace.diagnosis.data_disk import DiskTimer
from headrace.diagnosis.data_machine import Mount, memory_limit, memory_now, mount_of

MOUNTS = """\
/dev/vda / ext4 rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
store:/export /mnt/my\\040data nfs4 rw 0 0
bucket /mnt/bucket fuse.gcsfuse rw 0 0
old /mnt/twice ext4 rw 0 0
new /mnt/twice xfs rw 0 0
"""


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    file = tmp_path / "shard.bin"
    file.write_bytes(os.urandom(50 * mmap.PAGESIZE + 7))
    return file


def droppable(file: Path) -> PageCache:
    mount = mount_of(file)
    cache = PageCache([file], in_memory=mount is not None and mount.in_memory)
    if cache.undroppable:
        pytest.skip(cache.undroppable)
    return cache


def test_pages_are_counted_and_dropped(shard: Path) -> None:
    cache = droppable(shard)
    shard.read_bytes()
    assert cache.resident() == cache.size == 50 * mmap.PAGESIZE + 7
    assert cache.drop() is None
    assert cache.resident() == 0


def test_pages_that_somebody_has_mapped_stay_and_it_is_said(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = droppable(shard)
    monkeypatch.setattr("headrace.diagnosis.data_cache.TRIES", 2)
    with open(shard, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as held:
        assert len(held[:]) == cache.size  # touches every page
        reason = cache.drop()
    assert reason is not None
    assert "another process has the shards mapped" in reason


def test_a_file_in_memory_cannot_be_dropped(shard: Path) -> None:
    cache = PageCache([shard], in_memory=True)
    assert "file system in memory" in (cache.drop() or "")


def test_another_system_says_so(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    cache = PageCache([shard])
    assert cache.unseen == "the page cache can be looked into on Linux only, and this is darwin."
    assert "posix_fadvise" in (cache.drop() or "")


def test_the_pages_of_others_are_not_believed_in(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel calls all of them resident for those who may not know."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: shard.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    cache = PageCache([shard])
    assert cache.unseen == "only the owner of shard.bin may see which of its pages are in the page cache."
    assert cache.drop() == cache.unseen


def test_an_empty_shard_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "empty.bin").write_bytes(b"")
    cache = PageCache([tmp_path / "empty.bin"])
    assert cache.unseen or cache.resident() == 0


def test_disk_reads_stay_inside_the_files(tmp_path: Path) -> None:
    """Shards of all sizes, one smaller than a row: every byte comes once in order, and random rows are rows."""
    sizes = (5_000, 100, 2_500_000)
    for number, size in enumerate(sizes):
        (tmp_path / f"{number}.bin").write_bytes(b"x" * size)
    files = [tmp_path / f"{number}.bin" for number in range(3)]
    droppable(files[0])
    timer = DiskTimer(PageCache(files), row_bytes=1000, seed=0)
    assert timer.round(60.0) is None
    assert timer.sequential().rounds == timer.random().rounds == 1
    assert timer.sequential().value > 0
    from contextlib import ExitStack

    with ExitStack() as opened:
        places = list(timer._at_random(opened))
        assert len(places) == len(set(places))
        for descriptor, offset, length in places:
            assert len(os.pread(descriptor, length, offset)) == min(1000, os.fstat(descriptor).st_size)
    with ExitStack() as opened:
        read = [len(os.pread(descriptor, length, offset)) for descriptor, offset, length in timer._in_order(opened)]
    assert sum(read) == sum(sizes)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/me/data", Mount("/dev/vda", "ext4")),
        ("/dev/shm/data", Mount("tmpfs", "tmpfs")),
        ("/mnt/my data/web", Mount("store:/export", "nfs4")),
        ("/mnt/bucket", Mount("bucket", "fuse.gcsfuse")),
        ("/mnt/twice/web", Mount("new", "xfs")),
    ],
)
def test_mounts(path: str, expected: Mount, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    found = mount_of(Path(path), tmp_path / "mounts")
    assert found == expected
    assert found.network == (expected.filesystem in {"nfs4", "fuse.gcsfuse"})
    assert found.in_memory == (expected.filesystem == "tmpfs")


def test_no_table_of_mounts(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "none") is None


def test_limits_of_both_versions_and_of_the_groups_above(tmp_path: Path) -> None:
    groups, root = tmp_path / "cgroup", tmp_path / "fs"
    (root / "a" / "b").mkdir(parents=True)
    groups.write_text("0::/a/b\n")
    (root / "a" / "b" / "memory.max").write_text("max\n")
    assert memory_limit(groups, root) is None
    (root / "a" / "memory.max").write_text("5000\n")
    assert memory_limit(groups, root) == 5000
    (root / "memory" / "job").mkdir(parents=True)
    groups.write_text("5:cpu,memory:/job\n0::/\n")
    (root / "memory" / "job" / "memory.limit_in_bytes").write_text("7000\n")
    assert memory_limit(groups, root) == 7000
    assert memory_limit(tmp_path / "none", root) is None


def test_memory_of_this_machine() -> None:
    memory = memory_now()
    assert 0 < memory.available <= memory.machine
    assert memory.limit is None or memory.limit < memory.machine
