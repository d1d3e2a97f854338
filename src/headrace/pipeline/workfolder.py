"""The hidden `.headrace` folder of a dataset in the making: who holds it, its plan, and what is finished."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import UsageError
from headrace.files import disk_full_named, write_atomically
from headrace.pipeline.differences import describe_differences
from headrace.pipeline.holding import LOCK, hold_alone
from headrace.pipeline.hub_record import FILE as HUB_RECORD
from headrace.pipeline.results import TaskResult
from headrace.storage import Shard, checksum
from headrace.storage.manifest import FILE as METADATA

NAME = ".headrace"
EVENTS = "events.jsonl"
BANNED = "banned-"
SYNCED = "synced-*.json"
OWN_PATTERNS = ("shard-[0-9]*.bin", "shard-[0-9]*.idx", "val-[0-9]*.bin", "val-[0-9]*.idx", "bestfit-*.npy")
PARTS = "part-*"  # what a killed worker left half-written
OWN_FILES = (METADATA, f".{METADATA}.part", "rejects.jsonl")


class WorkFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self._plan = self.path / "plan.json"
        self._trusted = self.path / "trusted-engines.json"
        self.events = self.path / EVENTS
        self.tokenizer = folder / "tokenizer"
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
            if others and not self.path.is_dir():  # another share may have made it just now
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
        """One writer at a time."""
        with hold_alone(self.path):
            yield

    def begin(self, identity: dict[str, Any]) -> None:
        """Write the plan's identity, or check that this is the run that was begun here before."""
        for path in self.path.glob(PARTS):
            remove(path)
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

    def results(self, plan: str, tasks: Sequence[int]) -> dict[int, TaskResult]:
        """Finished tasks of this plan whose shards are there; a result without its files is not believed.

        Workers do not wait for the disk, so after a power cut a file may have its name and size but not its bytes:
        when the machine was started anew since the last run, the checksums are compared too. Of a share that came to
        its end everything is on the disk, on whatever machine that was.
        """
        boot, synced = _boot_id(), self._synced()
        same_boot = boot != b"" and self._boot.is_file() and self._boot.read_bytes() == boot
        found = {}
        for index in tasks:
            with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
                result = msgspec.json.decode(self._result(index).read_bytes(), type=TaskResult)
                sure = same_boot or index in synced
                if result.plan == plan and all(self._holds(shard, sure) for shard in result.shards):
                    found[index] = result
        self._unsettle(synced.intersection(tasks) - found.keys())
        write_atomically(self._boot, boot)  # only now: a check that is killed is made again
        return found

    def _result(self, index: int) -> Path:
        return self.path / f"task-{index:05d}.json"

    def _synced(self) -> set[int]:
        """Tasks of shares that came to their end."""
        return self._read_synced(self.path.glob(SYNCED))

    def _read_synced(self, files: Iterable[Path]) -> set[int]:
        return {index for path in files if path.is_file() for index in msgspec.json.decode(path.read_bytes())}

    def _unsettle(self, tasks: Iterable[int]) -> None:
        """They are to be done again, and nobody will know when that is on the disk."""
        again = set(tasks)
        for path in self.path.glob(SYNCED) if again else ():
            if not again.isdisjoint(msgspec.json.decode(path.read_bytes())):
                path.unlink(missing_ok=True)

    def _holds(self, shard: Shard, sure: bool) -> bool:
        bin_file, idx_file = (self.folder / f"{shard.name}.{suffix}" for suffix in ("bin", "idx"))
        if not (bin_file.is_file() and bin_file.stat().st_size == shard.bytes and idx_file.is_file()):
            return False
        return sure or (checksum(bin_file), checksum(idx_file)) == (shard.xxh3_128, shard.index_xxh3_128)

    def forget(self, index: int) -> None:
        """Remove a task's result and shards."""
        self._unsettle([index])
        self._result(index).unlink(missing_ok=True)
        (self.path / f"task-{index:05d}.rejects.jsonl").unlink(missing_ok=True)
        for prefix in ("shard", "val"):
            for suffix in ("bin", "idx"):
                (self.folder / f"{prefix}-{index:05d}.{suffix}").unlink(missing_ok=True)

    def reject_files(self) -> list[Path]:
        return sorted(self.path.glob("task-*.rejects.jsonl"))

    def banned_engines(self) -> set[str]:
        """A file for each, so that no share can overwrite what another has found."""
        return {path.name.removeprefix(BANNED) for path in self.path.glob(f"{BANNED}*")}

    def ban_engine(self, engine: str) -> None:
        (self.path / f"{BANNED}{engine}").touch()

    def trusted_engines(self) -> frozenset[str]:
        """Engines that have passed a gate of this dataset: what they made in earlier runs may be kept."""
        return read_engines(self.path.glob("trusted-*.json"))

    def note_gate(self, exact: frozenset[str], wrong: frozenset[str]) -> None:
        """Keep what a gate has found of the engines."""
        write_atomically(self._trusted, msgspec.json.encode(sorted(exact)))

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
        """Drop all but the locks, the events and what the hub said: the work is done, or is to be begun anew."""
        for path in self.path.iterdir():
            if not path.name.startswith((LOCK, EVENTS.partition(".")[0], HUB_RECORD)):
                remove(path)


def read_engines(files: Iterable[Path]) -> frozenset[str]:
    return frozenset(engine for path in files if path.is_file() for engine in msgspec.json.decode(path.read_bytes()))


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)  # a worker that is left over may write into it at this moment
    else:
        path.unlink(missing_ok=True)


def _boot_id() -> bytes:
    """Changes whenever this machine is started; empty where that cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return b""
