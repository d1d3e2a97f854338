"""Ways to write a file in any compression, and to read a source to its end."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import NamedTuple

import pytest
import zstandard

from conftest_hub import hub_client, hub_server, stand_in  # noqa: F401 - fixtures
from headrace.sources import open_source, read_spans

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),  # as the zstd command does
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


class Located(NamedTuple):
    """A reject without its weight."""

    file: str
    where: str
    reason: str


class Result(NamedTuple):
    texts: list[bytes]
    rejects: list[Located]


@pytest.fixture
def compress():
    return lambda suffix, data: COMPRESS[suffix](data)


@pytest.fixture(params=sorted(COMPRESS))
def suffix(request):
    return request.param


@pytest.fixture(params=sorted(set(COMPRESS) - {""}))
def packed(request):
    return request.param


@pytest.fixture
def read_all():
    """Reads a source with every span on its own (or together when it is sequential) and checks the byte counts."""

    def read(source, target: int = 64 << 20, **options) -> Result:
        opened = open_source(source, **options)
        spans = opened.spans(target)
        assert sum(span.size for span in spans) == opened.total_bytes
        result = Result([], [])
        for group in [spans] if opened.sequential else [[span] for span in spans]:
            batches = list(read_spans(group, opened.options))
            assert batches
            assert sum(batch.input_bytes for batch in batches) == sum(span.size for span in group)
            for batch in batches:
                result.texts.extend(batch.texts)
                result.rejects.extend(Located(*reject[:3]) for reject in batch.rejects)
        return result

    return read
