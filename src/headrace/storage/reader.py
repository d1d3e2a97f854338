"""TokenStore: a prepared dataset, opened by memory map in milliseconds whatever its size. Needs no torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import StoreError, UsageError
from headrace.storage.index import AGAIN, read_lengths
from headrace.storage.manifest import TRAIN, Metadata, Shard, read_metadata
from headrace.storage.mapping import ShardMaps

if TYPE_CHECKING:
    from headrace.tokenizers import Tokenizer


ACCESS = ("normal", "random", "whole")


class TokenStore:
    """Tokens of one split, as one long row; shards are mapped when they are first touched.

    `access` tells the system how they will be read: "normal"; "random", without reading ahead (256 random rows pulled
    363 MB from a cold disk with read-ahead, 2 MB without); or "whole", where a shard that is touched is read into
    memory in the background.
    """

    def __init__(
        self, path: str | Path, *, split: str = TRAIN, chunk_size: int | None = None, access: str = "normal"
    ) -> None:
        if access not in ACCESS:
            raise UsageError(f"access {access!r}: it must be one of {', '.join(ACCESS)}.")
        self.path = Path(path)
        self.metadata: Metadata = read_metadata(self.path)
        self.split, self.access = split, access
        self.shards = [shard for shard in self.metadata.of_split(split) if shard.documents]
        if not self.shards:
            raise UsageError(
                f"{self.path} has no split {split!r}. It has: "
                f"{', '.join(dict.fromkeys(shard.split for shard in self.metadata.shards))}. "
                f"To set documents aside, prepare with --val-fraction."
            )
        self.chunk_size = _checked_chunk_size(self.metadata.chunk_size if chunk_size is None else chunk_size)
        self.dtype = np.dtype(self.metadata.dtype)
        self.shard_starts = _starts([shard.tokens for shard in self.shards])
        self._document_starts = _starts([shard.documents for shard in self.shards])
        self._offsets: dict[int, NDArray[np.int64]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Goes to another process without its maps, which are made again there."""
        return {name: value for name, value in self.__dict__.items() if name != "maps"}

    @property
    def vocab_size(self) -> int:
        return self.metadata.vocab_size

    @property
    def total_tokens(self) -> int:
        return int(self.shard_starts[-1])

    @property
    def num_documents(self) -> int:
        return int(self._document_starts[-1])

    @property
    def num_chunks(self) -> int:
        return self.total_tokens // self.chunk_size

    def __len__(self) -> int:
        return self.num_chunks

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.chunk(index)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.chunk(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"TokenStore({str(self.path)!r}, split={self.split!r}: {self.total_tokens:,} tokens, "
            f"{self.num_documents:,} documents, {self.num_chunks:,} chunks of {self.chunk_size:,})"
        )

    def _repr_html_(self) -> str:
        from headrace.storage.store_html import store_html

        return store_html(self)

    def chunk(self, index: int, chunk_size: int | None = None) -> NDArray[Any]:
        """Chunk `index` at any chunk size: packing is arithmetic over the tokens, not a format."""
        size = self.chunk_size if chunk_size is None else _checked_chunk_size(chunk_size)
        count = self.total_tokens // size
        index = index + count if index < 0 else index
        if not 0 <= index < count:
            raise IndexError(f"chunk {index} of {count:,} (chunk size {size:,})")
        return self.tokens(index * size, (index + 1) * size)

    def tokens(self, start: int, stop: int) -> NDArray[Any]:
        """Tokens [start, stop): a view of the map, or a copy where the range crosses shards."""
        if not 0 <= start <= stop <= self.total_tokens:
            raise IndexError(f"tokens {start}:{stop} of {self.total_tokens:,}")
        pieces = []
        shard = _owner(self.shard_starts, start)
        while start < stop:
            base, end = int(self.shard_starts[shard]), int(self.shard_starts[shard + 1])
            pieces.append(self.shard_tokens(shard)[start - base : min(stop, end) - base])
            start, shard = min(stop, end), shard + 1
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.zeros(0, self.dtype)

    def document(self, index: int) -> NDArray[Any]:
        """The tokens of one document, its end-of-document token included."""
        index = index + self.num_documents if index < 0 else index
        if not 0 <= index < self.num_documents:
            raise IndexError(f"document {index} of {self.num_documents:,}")
        shard = _owner(self._document_starts, index)
        offsets = self._shard_offsets(shard)
        local = index - int(self._document_starts[shard])
        return self.shard_tokens(shard)[offsets[local] : offsets[local + 1]]

    def document_lengths(self) -> NDArray[np.int32]:
        """The length of every document, from the indexes alone."""
        return split_lengths(self.path, self.metadata, self.split)

    def document_starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """Where documents begin within tokens [start, stop), relative to start; from the index, never by scanning."""
        found = []
        shard = _owner(self.shard_starts, start)
        while shard < len(self.shards) and self.shard_starts[shard] < stop:
            begins = self._shard_offsets(shard)[:-1] + self.shard_starts[shard]
            low, high = np.searchsorted(begins, (start, stop))
            found.append(begins[low:high] - start)
            shard += 1
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer saved with the dataset; needs its library."""
        from headrace.tokenizers import load_tokenizer

        return load_tokenizer(self.path / "tokenizer")

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        return self.tokenizer.decode(ids)

    def shard_tokens(self, shard: int) -> NDArray[Any]:
        """The map of one shard."""
        return self.maps.shard(shard)

    @cached_property
    def maps(self) -> ShardMaps:
        """All shards as one range of addresses."""
        return ShardMaps([shard.tokens for shard in self.shards], self.dtype, self._open, access=self.access)

    def _shard_offsets(self, shard: int) -> NDArray[np.int64]:
        if shard not in self._offsets:
            info = self.shards[shard]
            self._offsets[shard] = _starts(read_lengths(self._file(info, "idx"), info.documents, self.dtype))
        return self._offsets[shard]

    def _open(self, index: int) -> int:
        """A descriptor, after the size was checked: touching a map beyond the file's end kills the process (SIGBUS)."""
        shard = self.shards[index]
        path = f"{self.path}/{shard.name}.bin"  # pathlib took a quarter of the time of a map
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise StoreError(f"{path} is missing. {AGAIN}") from None
        held = os.fstat(descriptor).st_size // self.dtype.itemsize
        if held != shard.tokens:
            os.close(descriptor)
            raise StoreError(
                f"{shard.name}.bin holds {held:,} tokens but the manifest counts {shard.tokens:,}. {AGAIN}"
            )
        return descriptor

    def _file(self, shard: Shard, suffix: str) -> Path:
        return self.path / f"{shard.name}.{suffix}"


def split_lengths(folder: Path, metadata: Metadata, split: str) -> NDArray[np.int32]:
    """Document lengths of a split, in the order of its shards."""
    dtype = np.dtype(metadata.dtype)
    shards = metadata.of_split(split)
    lengths = [read_lengths(folder / f"{shard.name}.idx", shard.documents, dtype) for shard in shards]
    return np.concatenate(lengths) if lengths else np.zeros(0, np.int32)


def _checked_chunk_size(size: int) -> int:
    if size < 1:
        raise UsageError(f"chunk size {size}: a chunk holds at least 1 token. Pass for example --chunk-size 2048.")
    return size


def _starts(counts: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _owner(starts: NDArray[np.int64], position: int) -> int:
    return int(np.searchsorted(starts, position, side="right")) - 1
