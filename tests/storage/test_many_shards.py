"""100,000 shards: opening reads one file, and a shard costs nothing before it is touched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from dataset import write_shard

from headrace import Loader
from headrace.errors import StoreError
from headrace.storage import Metadata, Shard, TokenizerInfo, TokenStore, write_metadata

SHARDS = 100_000
TOKENS = 75_000_000  # of each: 7.5 trillion in all
REAL = (0, 54_321, SHARDS - 1)  # those whose files are there

watched: list[list[str]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    """Python tells of every open, whoever calls it; a hook cannot be taken away again, so it is put in once."""
    if watched and event in ("open", "os.listdir", "os.scandir", "glob.glob"):
        watched[-1].append(str(arguments[0]))


sys.addaudithook(_hear)


@contextmanager
def opened() -> Iterator[list[str]]:
    """Paths that are opened or listed meanwhile."""
    watched.append([])
    try:
        yield watched[-1]
    finally:
        watched.pop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest of 7.5 trillion tokens; three of its shards are there, as sparse files of their full size."""
    folder = tmp_path_factory.mktemp("many")
    shards = [Shard(f"shard-{i:05d}", TOKENS, 49_000, 2 * TOKENS, f"{i:032x}", f"{i + 7:032x}") for i in range(SHARDS)]
    for index in REAL:
        with open(folder / f"shard-{index:05d}.bin", "wb") as file:
            file.truncate(2 * TOKENS)
            file.seek(-2, 2)
            file.write((index % 60_000).to_bytes(2, "little"))
    write(folder, shards)
    return folder


def write(folder: Path, shards: list[Shard]) -> None:
    tokens = sum(shard.tokens for shard in shards)
    write_metadata(
        folder,
        Metadata(
            headrace_version="test",
            chunk_size=2048,
            num_chunks=tokens // 2048,
            total_tokens=tokens,
            documents=sum(shard.documents for shard in shards),
            vocab_size=65_000,
            eos_token_id=0,
            bos_token_id=None,
            pad_token_id=None,
            dtype="uint16",
            text_bytes=4 * tokens,
            val_tokens=0,
            val_documents=0,
            rejects=0,
            packing="concat",
            tokenizer=TokenizerInfo("bytes", "bytes", "0" * 64, 65_000, 0, None, None),
            config={"eos": True, "bos": False},
            sources=[],
            shards=shards,
        ),
    )


def own(paths: list[str], folder: Path) -> list[str]:
    return [path for path in paths if path.startswith(str(folder))]


def test_opening_reads_the_manifest_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    real_stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **more: looked_at.append(str(path)) or real_stat(path, **more))
    with opened() as paths:
        store = TokenStore(folder)
        assert store.total_tokens == SHARDS * TOKENS
        assert len(store) == SHARDS * TOKENS // 2048
    assert own(paths, folder) == [str(folder / "metadata.json")]
    assert len(own(looked_at, folder)) <= 2


def test_a_chunk_opens_the_one_shard_that_it_lies_in(folder: Path) -> None:
    store = TokenStore(folder)
    for index in REAL:
        end = (index + 1) * TOKENS
        with opened() as paths:
            assert int(store.tokens(end - 1, end)[0]) == index % 60_000
        assert own(paths, folder) == [str(folder / f"shard-{index:05d}.bin")]
        with opened() as paths:
            assert int(store.tokens(end - 1, end)[0]) == index % 60_000
        assert own(paths, folder) == []


def test_only_a_shard_that_is_touched_has_to_be_there(folder: Path) -> None:
    store = TokenStore(folder)
    with pytest.raises(StoreError, match=r"shard-00001\.bin is missing"):
        store.tokens(TOKENS, TOKENS + 1)


def test_a_loader_opens_with_the_manifest_alone_and_its_state_is_small(folder: Path) -> None:
    with opened() as paths:
        loader = Loader(folder, seq_len=2048, batch_size=8)
        state = loader.state_dict()
        loader.load_state_dict({**state, "step": 10**8})
    assert set(own(paths, folder)) == {str(folder / "metadata.json")}
    assert loader.step == 10**8
    assert loader.chunks_per_epoch == (SHARDS * TOKENS - 1) // 2048
    assert len(str(state)) < 1_000
    loader.close()


def test_the_watch_notices_a_shard_that_is_opened(tmp_path: Path) -> None:
    """The tests above could not fail if it did not."""
    write(tmp_path, [write_shard(tmp_path, "shard-00000", [[1, 2, 3]], "uint16")])
    with opened() as paths:
        assert TokenStore(tmp_path).tokens(0, 3).tolist() == [1, 2, 3]
    assert own(paths, tmp_path) == [str(tmp_path / "metadata.json"), str(tmp_path / "shard-00000.bin")]
    assert np.fromfile(tmp_path / "shard-00000.bin", np.uint16).tolist() == [1, 2, 3]
