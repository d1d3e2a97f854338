"""Token ids <-> .bin/.idx shards + metadata.json."""

from headrace.storage.index import dtype_for
from headrace.storage.manifest import (
    TRAIN,
    VAL,
    Metadata,
    Shard,
    SourceInfo,
    TokenizerInfo,
    read_metadata,
    write_metadata,
)
from headrace.storage.reader import TokenStore, split_lengths
from headrace.storage.verify import VerifyReport, checksum, verify
from headrace.storage.writer import ShardWriter

__all__ = [
    "TRAIN",
    "VAL",
    "Metadata",
    "Shard",
    "ShardWriter",
    "SourceInfo",
    "TokenStore",
    "TokenizerInfo",
    "VerifyReport",
    "checksum",
    "dtype_for",
    "read_metadata",
    "split_lengths",
    "verify",
    "write_metadata",
]
