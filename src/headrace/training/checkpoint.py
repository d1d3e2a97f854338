"""Checkpoints: a run's states on disk, from which it goes on exactly where it was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO, TypeVar

from torch import Tensor

from headrace.errors import StoreError, UsageError
from headrace.training.checkpoint_files import (
    LoadedCheckpoint,
    Place,
    check_checkpoint,
    finish_shards,
    read_checkpoint,
    write_checkpoint,
)
from headrace.training.checkpoint_folder import (
    checkpoint_path,
    clear_leftovers,
    find_checkpoints,
    find_without_manifest,
    lock_folder,
    remove,
    step_of,
)
from headrace.training.checkpoint_manifest import Damaged, Manifest, StoredFile, describe, read_manifest
from headrace.training.retention import best_first, expired
from headrace.training.snapshot import Snapshot, take_snapshot

T = TypeVar("T")


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)


class Checkpoints:
    """The checkpoints of one run. Reading needs no more than the folder; saving holds it until `close`."""

    def __init__(
        self,
        folder: str | Path,
        *,
        keep_last: int = 3,
        keep_best: int = 1,
        best_metric: str = "val_loss",
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        if keep_last < 1 or keep_best < 0:
            raise UsageError(f"keep_last is {keep_last}, at least 1 is needed; keep_best is {keep_best}, at least 0.")
        self.folder = Path(folder)
        self._keep_last, self._keep_best, self._best_metric = keep_last, keep_best, best_metric
        self._report = report
        self._damaged: dict[Path, str] = {}
        self._lock: TextIO | None = None
        # Not shut down by `close`: its thread ends with this object, and a program's end waits for the last save.
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def __enter__(self) -> Checkpoints:
        self.claim()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def claim(self) -> None:
        """Become the folder's one writer, and clear what a killed one left half-done."""
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.folder)
            clear_leftovers(self.folder)

    def save(
        self,
        step: int,
        model_state: Mapping[str, Tensor],
        state: dict[str, Any],
        *,
        manifest: Mapping[str, Any],
        background: bool = True,
    ) -> None:
        """Copy everything to host memory, and write it while training goes on.

        What went wrong with the save before is raised when this one is under way: to report it costs no checkpoint.
        """
        self.claim()
        described = describe(step, manifest)
        self._settle()  # before the copy, so that only one is ever in memory
        snapshot = take_snapshot(model_state, state)
        failure = self._finish()
        self._pending = self._writer.submit(self._write, described, snapshot)
        if not background:
            self.wait()
        if failure is not None:
            raise failure

    def save_shards(
        self, step: int, shards: Mapping[str, StoredFile], state: dict[str, Any], *, manifest: Mapping[str, Any]
    ) -> None:
        """Name the shards that all ranks have written, and the rest of the state, a checkpoint."""
        self.claim()
        path = checkpoint_path(self.folder, step)
        finish_shards(path, take_snapshot({}, state), describe(step, manifest), shards)
        self._retire(path, step)

    def wait(self) -> None:
        """Return when the last save is on the disk, or raise what went wrong."""
        failure = self._finish()
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Wait for the last save and let the folder go."""
        try:
            self.wait()
        finally:
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def latest(self, *, model_only: bool = False) -> LoadedCheckpoint | None:
        """The newest checkpoint that is whole; None when there has never been one."""
        self._settle()
        return self._first_whole(self._newest_first(), lambda path: read_checkpoint(path, model_only=model_only))

    def latest_step(self) -> int | None:
        """The step of that checkpoint, found without loading it."""
        self._settle()
        found = self._first_whole(self._newest_first(), check_checkpoint)
        return None if found is None else found.step

    def best(self, *, model_only: bool = False) -> LoadedCheckpoint | None:
        """The whole checkpoint with the lowest metric; None when no checkpoint has that metric."""
        self._settle()
        ranked = best_first(self.list(), self._best_metric)
        paths = [checkpoint_path(self.folder, manifest.step) for manifest in ranked]
        return self._first_whole(paths, lambda path: read_checkpoint(path, model_only=model_only))

    def at(
        self, step: int, *, model_only: bool = False, place: Place | None = None, checked: bool = False
    ) -> LoadedCheckpoint:
        self._settle()
        path = checkpoint_path(self.folder, step)
        try:
            return read_checkpoint(path, model_only=model_only, place=place, checked=checked)
        except Damaged as error:
            raise StoreError(
                f"Checkpoint {path} is damaged: {error}. Restore it from a copy, or take another."
            ) from error
        except FileNotFoundError as error:
            steps = ", ".join(str(step_of(other)) for other in find_checkpoints(self.folder)) or "none"
            raise UsageError(f"{self.folder} has no checkpoint of step {step}. Its steps are: {steps}.") from error

    def discard_after(self, step: int) -> None:
        """Remove the checkpoints of later steps: a run that goes on from an older one has left their path."""
        self.claim()
        self.wait()
        for path in find_checkpoints(self.folder):
            if step_of(path) > step and not remove(path):
                raise StoreError(f"Checkpoint {path} is being read by another process. Try again when it is done.")

    def list(self) -> tuple[Manifest, ...]:
        """The manifests of the checkpoints, oldest first; one that cannot be read is reported and left out."""
        manifests = []
        for path in find_checkpoints(self.folder):
            try:
                manifests.append(read_manifest(path))
            except Damaged as error:
                self._note(path, f"Checkpoint {path} is damaged: {error}.")
        return tuple(manifests)

    def _write(self, manifest: Manifest, snapshot: Snapshot) -> None:
        path = checkpoint_path(self.folder, manifest.step)
        write_checkpoint(path, snapshot, manifest)
        self._retire(path, manifest.step)

    def _retire(self, path: Path, step: int) -> None:
        self._damaged.pop(path, None)
        for old in self._expired(step):
            try:
                remove(old)
            except OSError as error:  # the new one is safe; what cannot go now is tried again after the next save
                self._report(f"Checkpoint {old} cannot be removed: {error.strerror}.")

    def _expired(self, newest: int) -> Sequence[Path]:
        """A damaged checkpoint does not count, and goes when a later one is whole."""
        sound = [entry for entry in self.list() if checkpoint_path(self.folder, entry.step) not in self._damaged]
        steps = expired(sound, newest, keep_last=self._keep_last, keep_best=self._keep_best, metric=self._best_metric)
        damaged = [path for path in find_checkpoints(self.folder) if path in self._damaged and step_of(path) < newest]
        return [checkpoint_path(self.folder, step) for step in steps] + damaged

    def _newest_first(self) -> Sequence[Path]:
        for path in find_without_manifest(self.folder):
            self._note(path, f"Checkpoint {path} is passed over: it has no manifest.")
        return find_checkpoints(self.folder)[::-1]

    def _first_whole(self, paths: Sequence[Path], read: Callable[[Path], T]) -> T | None:
        problems = []
        for index, path in enumerate(paths):
            try:
                return read(path)
            except Damaged as error:
                problems.append(f"{path.name}: {error}")
                then = f"Going back to {paths[index + 1].name}" if paths[index + 1 :] else "There is none before it"
                self._note(path, f"Checkpoint {path} is damaged: {error}. {then}.")
            except FileNotFoundError:
                pass  # the run that writes here has just removed it
        if problems:
            raise StoreError(
                f"No checkpoint in {self.folder} is whole ({'; '.join(problems)}). "
                f"Restore one from a copy, or move this folder away to start the run anew."
            )
        return None

    def _note(self, path: Path, text: str) -> None:
        if self._damaged.get(path) != text:
            self._damaged[path] = text
            self._report(text)

    def _settle(self) -> None:
        """Wait for a save under way; what went wrong with it is kept for `wait`."""
        if self._pending is not None:
            self._pending.exception()

    def _finish(self) -> BaseException | None:
        pending, self._pending = self._pending, None
        return pending.exception() if pending is not None else None
