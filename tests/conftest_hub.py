"""The stand-in hub, for this process and for commands in processes of their own, and small real files to put on it."""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from conftest_pipeline import make_texts
from hub_server import HubServer

TOKEN = "hf_notForOthers"
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture
def hub_server() -> Iterator[HubServer]:
    server = HubServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def hub_client() -> Iterator[None]:
    """huggingface_hub's client, made without a proxy and once: to make one takes 0.1 s and more."""
    from huggingface_hub.utils import close_session

    with pytest.MonkeyPatch.context() as patch:
        for name in PROXIES:
            patch.delenv(name, raising=False)
        close_session()
        yield
        close_session()


@pytest.fixture
def stand_in(
    hub_server: HubServer, hub_client: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HubServer]:
    """This process asks the stand-in, and does not wait between attempts; the variables have been read long ago."""
    from huggingface_hub import constants

    import headrace.hub
    from headrace.sources.hub_file import find_place

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", hub_server.endpoint)
    template = f"{hub_server.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 1)
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 1)
    monkeypatch.setattr(headrace.hub, "WAITS", (0, 0, 0))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield hub_server
    find_place.cache_clear()


def environment(server: HubServer, home: Path, **more: str) -> dict[str, str]:
    """What a command needs to take the stand-in for the hub."""
    left_out = ("HF_HUB_OFFLINE", "HF_TOKEN", *PROXIES)
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    ours = {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    return {**kept, **ours, **more}


def parquet(texts: Sequence[str], rows: int, **columns: Sequence[object]) -> bytes:
    """A Parquet file with so many rows in each row group."""
    sink = io.BytesIO()
    table = pa.table({"id": list(range(len(texts))), "text": list(texts), **columns})
    pq.write_table(table, sink, row_group_size=rows, write_statistics=False)
    return sink.getvalue()


def jsonl(texts: Sequence[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def small_tokenizer() -> bytes:
    """A tokenizer.json of 258 ids: bytes, and two ends of a document."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>"), AddedToken("<|end|>")])
    return str(tokenizer.to_str()).encode()


def long_texts(count: int, size: int = 4_000, seed: int = 0) -> list[str]:
    """Words in no order, which no compression makes much smaller."""
    numbers = random.Random(seed)
    return [f"document {number} " + numbers.randbytes(size // 9 * 4).hex(" ", 4) for number in range(count)]


__all__ = [
    "TOKEN", "environment", "hub_client", "hub_server", "jsonl", "long_texts", "make_texts", "parquet",
    "small_tokenizer", "stand_in", "zst",
]  # fmt: skip
