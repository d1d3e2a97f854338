"""The hidden `.headrace` folder of a dataset in the making: who holds it, its plan, and what is finished."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import Busy, UsageError
from headrace.files import disk_full_named, write_atomically
from headrace.pipeline.differences import describe_differences
from headrace.pipeline.results import TaskResult
from headrace.storage import Shard, checksum
from headrace.storage.manifest import FILE as METADATA

NAME = ".headrace"
EVENTS = "events.jsonl"
OWN_PATTERNS = ("shard-[0-9]*.bin", "shard-[0-9]*.idx", "val-[0-9]*.bin", "val-[0-9]*.idx", "bestfit-*.npy")
PART_PATTERNS = ("*.bin", "*.idx", "*.part", "*.rejects")  # what a killed worker left half-written
OWN_FILES = (METADATA, f".{METADATA}.part", "rejects.jsonl")


class WorkFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self._plan = self.path / "plan.json"
        self._banned = self.path / "banned-engines.json"
        self._trusted = self.path / "trusted-engines.json"
        self._boot = self.path / "boot"

    @property
    def complete(self) -> bool:
        return (self.folder / METADATA).is_file()

    def create(self) -> None:
        """Make the folders; refuse one that holds somebody else's files."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"--out {self.folder} is a file. Name a folder that is new, empty, or a Headrace dataset.")
        if self.folder.is_dir() and not self.path.is_dir() and not self.complete:
            others = sorted(entry.name for entry in self.folder.iterdir())
            if others:
                shown = ", ".join(others[:3]) + (", ..." if others[3:] else "")
                raise UsageError(
                    f"--out {self.folder} holds something else ({shown}); "
                    f"Headrace writes only into a folder that is new, empty, or its own. Name another folder."
                )
        try:
            with disk_full_named(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
        except (PermissionError, NotADirectoryError, OSError) as error:
            raise UsageError(f"--out {self.folder} cannot be made: {error.strerror}. Name another folder.") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time. The kernel lets the lock go when its holder dies, however it dies."""
        with open(self.path / "lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise Busy(
                    f"{self.folder} is being written by {holder}. Wait until it is done, or stop it: "
                    f"the same command then goes on where it was."
                ) from None
            file.seek(0)
            file.truncate()
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            yield

    def begin(self, identity: dict[str, Any]) -> None:
        """Write the plan's identity, or check that this is the run that was begun here before."""
        for pattern in PART_PATTERNS:
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        if self._plan.is_file():
            self.check_same(msgspec.json.decode(self._plan.read_bytes()), identity)
        else:
            write_atomically(self._plan, msgspec.json.encode(identity))

    def check_same(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        differences = describe_differences(before, now)
        if differences:
            lines = "\n  ".join(differences)
            raise UsageError(
                f"{self.folder} was begun with other settings:\n  {lines}\n"
                f"Run the earlier command to go on, name another --out, or pass --force to start over."
            )

    def results(self) -> dict[int, TaskResult]:
        """Finished tasks whose shards are there; a result without its files is not believed.

        Workers do not wait for the disk, so after a power cut a file may have its name and size but not its bytes:
        when the machine was started anew since the last run, the checksums are compared too.
        """
        found = {}
        boot = _boot_id()
        same_boot = boot != b"" and self._boot.is_file() and self._boot.read_bytes() == boot
        for path in sorted(self.path.glob("task-*.json")):
            with contextlib.suppress(msgspec.DecodeError):
                result = msgspec.json.decode(path.read_bytes(), type=TaskResult)
                if all(self._holds(shard, same_boot) for shard in result.shards):
                    found[result.index] = result
        write_atomically(self._boot, boot)  # only now: a check that is killed is made again
        return found

    def _holds(self, shard: Shard, same_boot: bool) -> bool:
        bin_file, idx_file = (self.folder / f"{shard.name}.{suffix}" for suffix in ("bin", "idx"))
        if not (bin_file.is_file() and bin_file.stat().st_size == shard.bytes and idx_file.is_file()):
            return False
        return same_boot or (checksum(bin_file), checksum(idx_file)) == (shard.xxh3_128, shard.index_xxh3_128)

    def forget(self, index: int) -> None:
        """Remove a task's result and shards."""
        (self.path / f"task-{index:05d}.json").unlink(missing_ok=True)
        (self.path / f"task-{index:05d}.rejects.jsonl").unlink(missing_ok=True)
        for prefix in ("shard", "val"):
            for suffix in ("bin", "idx"):
                (self.folder / f"{prefix}-{index:05d}.{suffix}").unlink(missing_ok=True)

    def reject_files(self) -> list[Path]:
        return sorted(self.path.glob("task-*.rejects.jsonl"))

    def banned_engines(self) -> set[str]:
        return set(msgspec.json.decode(self._banned.read_bytes())) if self._banned.is_file() else set()

    def trusted_engines(self) -> frozenset[str]:
        """Engines that have passed the gate of this dataset: what they made in earlier runs may be kept."""
        return frozenset(msgspec.json.decode(self._trusted.read_bytes()) if self._trusted.is_file() else ())

    def trust_engines(self, engines: frozenset[str]) -> None:
        write_atomically(self._trusted, msgspec.json.encode(sorted(engines)))

    def ban_engine(self, engine: str) -> None:
        write_atomically(self._banned, msgspec.json.encode(sorted({*self.banned_engines(), engine})))

    def remove_own_files(self) -> None:
        """--force: delete what Headrace made here, and nothing else."""
        for pattern in OWN_PATTERNS:
            for path in self.folder.glob(pattern):
                path.unlink()
        for name in OWN_FILES:
            (self.folder / name).unlink(missing_ok=True)
        if (self.folder / "tokenizer" / "headrace-tokenizer.json").is_file():
            shutil.rmtree(self.folder / "tokenizer")
        self.clear()

    def clear(self) -> None:
        """Drop all but the lock and the events: the work is done, or is to be begun anew."""
        for path in self.path.iterdir():
            if path.name not in ("lock", EVENTS):
                path.unlink()


def _boot_id() -> bytes:
    """Changes whenever this machine is started; empty where that cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return b""
