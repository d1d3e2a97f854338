"""The tensors of a checkpoint as torch's distributed checkpoint keeps them: files of every rank, read by any number.

torch pickles the list of what is where. It is read here with no more classes than such a list needs, so that opening a
checkpoint runs no code of whoever wrote it.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from headrace.errors import StoreError
from headrace.files import sync
from headrace.storage import checksum
from headrace.training.checkpoint_manifest import StoredFile

SHARDS = "shards"
LIST = ".metadata"
MODEL, OPTIMIZER = "model.", "optimizer."
Place = Callable[[str, torch.Size, torch.dtype], Tensor]

_OF_TORCH = {
    "torch.distributed.checkpoint.metadata": {
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
    "torch": {"Size", *(name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype))},
}
_PATHS = {"PurePosixPath", "PosixPath", "PureWindowsPath", "WindowsPath"}


def write_shards(folder: Path, tensors: dict[str, Tensor], rank: int) -> dict[str, StoredFile]:
    """All ranks together, each the files of its own; gives what this rank wrote."""
    try:
        save(tensors, checkpoint_id=folder)
    except CheckpointException as error:  # raised on every rank; it is no Exception
        first = next(iter(error.failures.values()))[0]
        raise StoreError(f"The checkpoint {folder.parent} was not saved ({type(first).__name__}: {first}).") from error
    found = [*sorted(folder.glob(f"__{rank}_*.distcp")), *([folder / LIST] if rank == 0 else [])]
    for path in found:
        sync(path)
    return {
        f"{folder.name}/{path.name}": StoredFile(bytes=path.stat().st_size, xxh3_128=checksum(path)) for path in found
    }


def read_shards(folder: Path, *, model_only: bool, place: Place | None) -> dict[str, Tensor]:
    """The tensors by name: whole ones for this process alone, or what `place` gives, read by all ranks together."""
    reader = _Reader(folder)
    listed = reader.read_metadata().state_dict_metadata
    target: dict[str, Any] = {}
    for name, entry in listed.items():
        if not isinstance(entry, TensorStorageMetadata):
            raise StoreError(f"{folder} holds {name}, which is no tensor: Headrace did not write it.")
        if not model_only or name.startswith(MODEL):
            target[name] = (place or _whole)(name, entry.size, entry.properties.dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # said of every read without ranks
        load(target, storage_reader=reader, no_dist=place is None)
    return target


def named_tensors(model_state: dict[str, Tensor], optimizer_state: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    """One flat dict, as it is stored."""
    moments = {
        f"{OPTIMIZER}{index}.{key}": value for index, entry in optimizer_state.items() for key, value in entry.items()
    }
    return {**{f"{MODEL}{name}": tensor for name, tensor in model_state.items()}, **moments}


def split_tensors(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[int, dict[str, Tensor]]]:
    """Undo `named_tensors`."""
    model: dict[str, Tensor] = {}
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(MODEL):
            model[name.removeprefix(MODEL)] = tensor
        else:
            index, _, key = name.removeprefix(OPTIMIZER).partition(".")
            moments.setdefault(int(index), {})[key] = tensor
    return model, moments


def _whole(name: str, size: torch.Size, dtype: torch.dtype) -> Tensor:
    return torch.empty(size, dtype=dtype)


class _Reader(FileSystemReader):
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with open(Path(self.path) / LIST, "rb") as file:
            metadata: Metadata = _ListUnpickler(file).load()
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _OF_TORCH.get(module, ()) or (module.partition(".")[0] == "pathlib" and name in _PATHS):
            return super().find_class(module, name)
        raise StoreError(f"{LIST} of a checkpoint names {module}.{name}, which no list of tensors needs. Not opened.")
