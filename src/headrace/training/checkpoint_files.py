"""The files of one checkpoint: written whole or not at all, read back only when every bit is right."""

from __future__ import annotations

import errno
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headrace.errors import HeadraceError, OutOfSpace, StoreError
from headrace.files import human_bytes, sync, write_atomically
from headrace.storage import checksum
from headrace.training.checkpoint_folder import publish, reading, writing_name
from headrace.training.checkpoint_manifest import (
    FILE,
    SHARDED_VERSION,
    Damaged,
    Manifest,
    StoredFile,
    encode_manifest,
    read_manifest,
)
from headrace.training.snapshot import Snapshot, thaw

MODEL = "model.safetensors"
STATE = "state.pt"
Place = Callable[[str, torch.Size, torch.dtype], Tensor]
FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class LoadedCheckpoint:
    path: Path
    manifest: Manifest
    model_state: dict[str, Tensor]  # tied names show the same tensor, as they did when it was saved
    state: dict[str, Any]  # empty when only the model was asked for

    @property
    def step(self) -> int:
        return self.manifest.step


def write_checkpoint(path: Path, snapshot: Snapshot, manifest: Manifest) -> None:
    """Give a snapshot its name on the disk when all of it is there, or leave nothing."""
    part = writing_name(path)
    try:
        _check_space(path.parent, snapshot.nbytes)
        part.mkdir()
        _write_files(part, snapshot, manifest)
        publish(part, path)
    except Exception as error:
        shutil.rmtree(part, ignore_errors=True)
        raise _named(error, path, snapshot.nbytes) from error


def finish_shards(path: Path, snapshot: Snapshot, manifest: Manifest, shards: Mapping[str, StoredFile]) -> None:
    """Make a checkpoint of the shards that the ranks have written, and give it its name."""
    part = writing_name(path)
    try:
        _write_state(part, snapshot)
        files = {**shards, STATE: describe_file(part / STATE)}
        manifest = msgspec.structs.replace(manifest, format_version=SHARDED_VERSION, files=files)
        write_atomically(part / FILE, encode_manifest(manifest))
        publish(part, path)
    except Exception as error:
        shutil.rmtree(part, ignore_errors=True)
        raise _named(error, path, snapshot.nbytes) from error


def read_checkpoint(
    path: Path, *, model_only: bool = False, place: Place | None = None, checked: bool = False
) -> LoadedCheckpoint:
    """Compare every file with the manifest, then load it; retention leaves alone what is being read.

    With `place`, all ranks read shards together, each its own; `checked` says that one of them has compared.
    """
    try:
        with reading(path):
            return _read_files(path, model_only, place, checked)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"it cannot be read ({error.strerror})") from error


def check_checkpoint(path: Path) -> Manifest:
    """Compare every file with the manifest and load none."""
    try:
        with reading(path):
            manifest = read_manifest(path)
            for name, stored in manifest.files.items():
                _check_file(path / name, stored)
            return manifest
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"it cannot be read ({error.strerror})") from error


def _read_files(path: Path, model_only: bool, place: Place | None, checked: bool) -> LoadedCheckpoint:
    manifest = read_manifest(path)
    whole = MODEL in manifest.files
    for name in (MODEL,) if whole and model_only else () if checked else manifest.files:
        _check_file(path / name, manifest.files[name])
    if not whole:
        return _read_sharded(path, manifest, model_only, place)
    model = _load_model(path / MODEL, manifest)
    state = {} if model_only else _load_state(path / STATE)
    return LoadedCheckpoint(path=path, manifest=manifest, model_state=model, state=state)


def _read_sharded(path: Path, manifest: Manifest, model_only: bool, place: Place | None) -> LoadedCheckpoint:
    from headrace.training.checkpoint_shards import SHARDS, read_shards, split_tensors

    model, moments = split_tensors(read_shards(path / SHARDS, model_only=model_only, place=place))
    state = {} if model_only else _load_state(path / STATE)
    if state:
        state["optimizer"] = {**state["optimizer"], "state": moments}
    return LoadedCheckpoint(path=path, manifest=manifest, model_state=model, state=state)


def _write_files(part: Path, snapshot: Snapshot, manifest: Manifest) -> None:
    save_file(snapshot.model, part / MODEL, metadata={"format": "pt"})
    sync(part / MODEL)
    _write_state(part, snapshot)
    files = {name: describe_file(part / name) for name in (MODEL, STATE)}
    manifest = msgspec.structs.replace(manifest, aliases=snapshot.aliases, files=files)
    write_atomically(part / FILE, encode_manifest(manifest))


def _write_state(part: Path, snapshot: Snapshot) -> None:
    # An open file and not a path: torch.save then leaves the operating system's error in the exception's context.
    with open(part / STATE, "wb") as file:
        torch.save(snapshot.state, file)
    sync(part / STATE)


def describe_file(path: Path) -> StoredFile:
    return StoredFile(bytes=path.stat().st_size, xxh3_128=checksum(path))


def _check_space(folder: Path, nbytes: int) -> None:
    """A disk filled to the last byte stops the logs of the run too, so do not begin what cannot fit."""
    if shutil.disk_usage(folder).free < nbytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _named(error: Exception, path: Path, nbytes: int) -> HeadraceError:
    number = next(_error_numbers(error), None)
    if number in FULL:
        return OutOfSpace(
            f"No space left for the checkpoint {path}: it needs {human_bytes(nbytes)}, the disk has "
            f"{human_bytes(shutil.disk_usage(path.parent).free)}. It was not saved; the ones before are kept and "
            f"training can go on. Free space on that disk, or keep fewer checkpoints."
        )
    why = os.strerror(number) if number is not None else f"{type(error).__name__}: {error}"
    return StoreError(
        f"The checkpoint {path} was not saved ({why}). The ones before are kept and training can go on. "
        f"Check that the folder can be written to."
    )


def _error_numbers(error: BaseException | None) -> Iterator[int]:
    """torch hides the system's error in the context, safetensors in the text of its own: '(os error 28)'."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            yield error.errno
        elif isinstance(error, SafetensorError) and (found := re.search(r"(?:os error|code:) (\d+)", str(error))):
            yield int(found[1])
        error = error.__cause__ or error.__context__


def _check_file(path: Path, stored: StoredFile) -> None:
    try:
        size = path.stat().st_size
        digest = checksum(path) if size == stored.bytes else ""
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read ({error.strerror})") from error
    if size != stored.bytes:
        raise Damaged(f"{path.name} has {size:,} bytes, {FILE} says {stored.bytes:,}")
    if digest != stored.xxh3_128:
        raise Damaged(f"{path.name} is not what was written (checksum differs)")


def _load_model(path: Path, manifest: Manifest) -> dict[str, Tensor]:
    try:
        model = load_file(path)
    except SafetensorError as error:
        raise StoreError(_unreadable(path, error)) from error
    return model | {name: model[stored] for name, stored in manifest.aliases.items()}


def _load_state(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = thaw(torch.load(path, map_location="cpu", weights_only=True))
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise StoreError(_unreadable(path, error)) from error
    return state


def _unreadable(path: Path, error: Exception) -> str:
    return f"{path} is what was written, but torch {torch.__version__} cannot read it: {error}. Use a newer torch."
