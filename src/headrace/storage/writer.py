"""ShardWriter: token ids -> one .bin/.idx pair, published whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.files import disk_full_named
from headrace.storage.index import encode_index
from headrace.storage.manifest import TRAIN, Shard


class ShardWriter:
    """Writes into `parts`, a folder on the same disk, and renames into `folder` when it is closed.

    It does not wait for the disk: whoever writes the manifest syncs the shards first (files.Syncer).

    sha256 is optional: at 0.95 GB/s it would cost 6-12% of a fast run, xxh3 (27 GB/s) nothing.
    """

    def __init__(
        self, folder: Path, parts: Path, name: str, dtype: np.dtype[Any], *, split: str = TRAIN, sha256: bool = False
    ) -> None:
        self._folder, self._name, self._dtype, self._split = folder, name, dtype, split
        self._bin = parts / f"{name}.{os.getpid()}.bin"  # a worker left over from a killed run may hold the same task
        self._file = open(self._bin, "wb", buffering=0)  # noqa: SIM115 - closed by close() and abort()
        self._lengths: list[NDArray[np.int32]] = []
        self._xxh3 = xxhash.xxh3_128()
        self._sha256 = hashlib.sha256() if sha256 else None
        self.tokens = 0
        self.documents = 0

    def append(self, tokens: NDArray[Any], lengths: NDArray[np.int32]) -> None:
        """Add documents: their tokens end to end, and how long each is."""
        data = np.ascontiguousarray(tokens, self._dtype).data.cast("B")
        with disk_full_named(self._folder / f"{self._name}.bin"):
            _write_all(self._file, data)
        self._xxh3.update(data)
        if self._sha256 is not None:
            self._sha256.update(data)
        self._lengths.append(lengths)
        self.tokens += len(tokens)
        self.documents += len(lengths)

    def close(self) -> Shard:
        """Give .bin, then .idx, their names, and describe them."""
        self._file.close()
        index = encode_index(_joined(self._lengths), self._dtype)
        idx = self._bin.with_suffix(".idx")
        with disk_full_named(self._folder / f"{self._name}.idx"):
            idx.write_bytes(index)
            os.replace(self._bin, self._folder / f"{self._name}.bin")
            os.replace(idx, self._folder / f"{self._name}.idx")
        return Shard(
            name=self._name,
            tokens=self.tokens,
            documents=self.documents,
            bytes=self.tokens * self._dtype.itemsize,
            xxh3_128=self._xxh3.hexdigest(),
            index_xxh3_128=xxhash.xxh3_128(index).hexdigest(),
            split=self._split,
            sha256=self._sha256.hexdigest() if self._sha256 else None,
        )

    def abort(self) -> None:
        self._file.close()
        self._bin.unlink(missing_ok=True)


def _write_all(file: Any, data: memoryview) -> None:
    """write(2) may take only a part, above all on a disk that is filling up."""
    while data:
        data = data[file.write(data) :]


def _joined(lengths: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(lengths) if lengths else np.zeros(0, np.int32)
