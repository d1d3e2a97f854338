"""The loader gives the tokens that the arithmetic says, in an order that ranks, prefetch and resuming do not change."""

from __future__ import annotations

import gc
import itertools
import json
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset import EOS, random_documents, write_dataset

from headrace import Loader, Mixture, TokenStore
from headrace.errors import UsageError
from headrace.loading import Sampler


@pytest.fixture
def web(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "web", [random_documents(seed, 60) for seed in range(5)])
    return tmp_path / "web"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "code", [random_documents(seed + 50, 25) for seed in range(2)])
    return tmp_path / "code"


def take(loader: Loader, count: int) -> list[list[list[int]]]:
    """Batches as lists: copies, because the loader uses its buffers again."""
    return [batch.tokens.tolist() for batch in itertools.islice(loader, count)]


def together(parts: list[list[list[list[int]]]]) -> list[list[list[int]]]:
    """The global batches out of what each rank got."""
    return [list(itertools.chain.from_iterable(step)) for step in zip(*parts, strict=True)]


def options(**more: Any) -> dict[str, Any]:
    return {"seq_len": 16, "batch_size": 8, "seed": 3, **more}


def test_sequential_batches_are_the_tokens_themselves(web: Path) -> None:
    tokens = TokenStore(web).tokens(0, TokenStore(web).total_tokens).tolist()
    loader = Loader(web, **options(shuffle=False))
    rows = [row for batch in take(loader, loader.steps_per_epoch) for row in batch]
    assert rows == [tokens[i * 16 : i * 16 + 17] for i in range(len(rows))]


def test_inputs_and_targets_are_one_apart(web: Path) -> None:
    batch = next(Loader(web, **options()))
    assert batch.input_ids.shape == batch.targets.shape == (8, 16)
    assert batch.input_ids[:, 1:].tolist() == batch.targets[:, :-1].tolist()
    assert batch.tokens.dtype == np.int64


def test_an_epoch_has_every_chunk_once(web: Path) -> None:
    chunks = (TokenStore(web).total_tokens - 1) // 16
    loader = Loader(web, **options(batch_size=1))
    tokens = TokenStore(web).tokens(0, chunks * 16 + 1).tolist()
    expected = sorted(tokens[i * 16 : i * 16 + 17] for i in range(chunks))
    first, second = take(loader, chunks), take(loader, chunks)
    assert sorted(row for batch in first for row in batch) == expected
    assert sorted(row for batch in second for row in batch) == expected
    assert first != second
    assert [round(progress.epochs, 6) for progress in loader.progress()] == [2.0]


def test_batches_follow_the_sampler(web: Path, code: Path) -> None:
    mixture = Mixture({str(web): 0.7, str(code): 0.3})
    stores = [TokenStore(web), TokenStore(code)]
    sampler = Sampler(mixture, [(store.total_tokens - 1) // 16 for store in stores], seed=3)
    located = sampler.locate(np.arange(40 * 8))
    expected = [
        stores[source].tokens(chunk * 16, chunk * 16 + 17).tolist()
        for source, chunk in zip(located.source.tolist(), located.chunk.tolist(), strict=True)
    ]
    rows = [row for batch in take(Loader(mixture, **options()), 40) for row in batch]
    assert rows == expected


@pytest.mark.parametrize("prefetch", [1, 2, 9])
@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_the_global_order_depends_on_neither_ranks_nor_prefetch(
    web: Path, code: Path, world_size: int, prefetch: int
) -> None:
    mix = {str(web): 0.6, str(code): 0.4}
    expected = take(Loader(mix, **options()), 30)
    ranks = [Loader(mix, **options(), rank=r, world_size=world_size, prefetch=prefetch) for r in range(world_size)]
    parts = [take(rank, 30) for rank in ranks]
    assert together(parts) == expected


def test_resuming_at_every_step(web: Path, code: Path) -> None:
    mix = {str(web): 0.6, str(code): 0.4}
    expected = take(Loader(mix, **options()), 50)
    running = Loader(mix, **options(prefetch=3))
    for step in range(50):
        state = json.loads(json.dumps(running.state_dict(), sort_keys=True))
        resumed = Loader(mix, **options(), prefetch=1 + step % 4)
        resumed.load_state_dict(state)
        assert take(resumed, 1) == expected[step : step + 1]
        assert take(running, 1) == expected[step : step + 1]


def test_two_ranks_then_one_then_four(web: Path) -> None:
    expected = take(Loader(web, **options()), 30)
    state, seen = Loader(web, **options()).state_dict(), []
    for world_size, steps in ((2, 7), (1, 11), (4, 12)):
        ranks = [Loader(web, **options(), rank=rank, world_size=world_size) for rank in range(world_size)]
        for rank in ranks:
            rank.load_state_dict(state)
        parts = [take(rank, steps) for rank in ranks]
        seen += together(parts)
        state = ranks[0].state_dict()
    assert seen == expected


def test_changing_the_mixture_neither_repeats_nor_skips(web: Path, code: Path) -> None:
    names = [str(web), str(code)]
    loader = Loader({names[0]: 0.9, names[1]: 0.1}, **options())
    rows = [row for batch in take(loader, 20) for row in batch]
    loader.change_mixture({names[0]: 0.2, names[1]: 0.8})
    rows += [row for batch in take(loader, 10) for row in batch]
    for name, progress in zip(names, loader.progress(), strict=True):
        store = TokenStore(name)
        mine = take(Loader(name, seq_len=16, batch_size=1, shuffle=False), (store.total_tokens - 1) // 16)
        chunks = [tuple(row) for batch in mine for row in batch]
        drawn = [tuple(row) for row in rows if tuple(row) in set(chunks)]
        assert len(drawn) == progress.samples
        assert len(set(drawn)) == min(len(drawn), len(chunks))
    resumed = Loader({names[0]: 0.9, names[1]: 0.1}, **options())
    resumed.load_state_dict(loader.state_dict())
    assert take(resumed, 5) == take(loader, 5)


def test_a_dataset_may_have_moved(web: Path, tmp_path: Path) -> None:
    loader = Loader(web, **options())
    take(loader, 4)
    moved = web.rename(tmp_path / "elsewhere")
    resumed = Loader(moved, **options())
    resumed.load_state_dict(loader.state_dict())
    assert take(resumed, 3) == take(loader, 3)


def test_another_dataset_is_refused(web: Path, code: Path) -> None:
    state = Loader(web, **options()).state_dict()
    with pytest.raises(UsageError, match="fingerprints"):
        Loader(code, **options()).load_state_dict(state)
    with pytest.raises(UsageError, match="seq_len: 16 then, 8 now"):
        Loader(web, **options(seq_len=8)).load_state_dict(state)


def test_different_tokenizers_are_refused(web: Path, tmp_path: Path) -> None:
    write_dataset(tmp_path / "other", [random_documents(1, 30)], vocab_size=300)
    path = tmp_path / "other" / "metadata.json"
    path.write_text(path.read_text().replace("0" * 64, "1" * 64))
    with pytest.raises(UsageError, match="their ids mean different things"):
        Loader([web, tmp_path / "other"], **options())


def test_held_out_chunks_are_never_trained_on(web: Path) -> None:
    def chunks(split: str) -> set[tuple[int, ...]]:
        loader = Loader(web, seq_len=16, batch_size=1, shuffle=False, split=split, holdout=0.1)
        return {tuple(row) for batch in take(loader, loader.steps_per_epoch) for row in batch}

    train, val = chunks("train"), chunks("val")
    everything = Loader(web, seq_len=16, batch_size=1).steps_per_epoch
    assert len(train) + len(val) == everything
    assert not train & val
    with pytest.raises(UsageError, match="has no validation documents"):
        Loader(web, **options(split="val"))


def test_document_boundaries_come_from_the_index(tmp_path: Path) -> None:
    """EOS inside a document is no boundary."""
    documents = [[1, 2, EOS], [3, EOS, 4, EOS], [5, 6, 7, 8, 9, EOS], [10, 11, 12, EOS]]
    write_dataset(tmp_path / "a", [documents])
    batch = next(Loader(tmp_path / "a", seq_len=8, batch_size=2, shuffle=False, documents=True))
    found = batch.boundaries
    assert found is not None
    assert batch.input_ids.tolist() == [[1, 2, EOS, 3, EOS, 4, EOS, 5], [6, 7, 8, 9, EOS, 10, 11, 12]]
    assert found.position_ids.tolist() == [[0, 1, 2, 0, 1, 2, 3, 0], [0, 1, 2, 3, 4, 0, 1, 2]]
    assert found.doc_ids.tolist() == [[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 0, 0, 0, 1, 1, 1]]
    assert found.cu_seqlens.tolist() == [0, 3, 7, 8, 13, 16]
    assert found.loss_mask.tolist() == [
        [True, True, False, True, True, True, False, True],
        [True, True, True, True, False, True, True, True],
    ]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
def test_dtypes(web: Path, dtype: str) -> None:
    assert next(Loader(web, **options(dtype=dtype))).tokens.dtype == np.dtype(dtype)


def test_buffers_go_round_and_a_held_batch_is_not_overwritten(web: Path) -> None:
    loader = Loader(web, **options(prefetch=2))
    seen = set()
    for _ in range(30):
        batch = next(loader)
        before = batch.tokens.copy()
        time.sleep(0.001)  # the thread fills all it may
        assert (batch.tokens == before).all()
        seen.add(batch.tokens.ctypes.data)
    assert len(seen) == 4  # two filled ahead, one held, one in the thread's hands
    assert loader.wait_statistics().batches == 30


def test_a_damaged_shard_reaches_the_caller(web: Path) -> None:
    loader = Loader(web, **options())
    (web / "shard-00003.bin").unlink()
    with pytest.raises(Exception, match=r"shard-00003.bin is missing"):
        take(loader, 100)


def test_going_elsewhere_keeps_no_old_buffers(web: Path) -> None:
    loader = Loader(web, **options())
    state = loader.state_dict()
    feeds = []
    for _ in range(3):
        next(loader)
        feeds.append(weakref.ref(loader._feed))
        loader.load_state_dict(state)
    gc.collect()
    assert [feed() for feed in feeds] == [None, None, None]
    loader.close()


def test_a_dropped_loader_leaves_no_thread(web: Path) -> None:
    loader = Loader(web, **options())
    next(loader)
    del loader
    gc.collect()
    end = time.monotonic() + 10
    while any(thread.name == "headrace-loader" for thread in threading.enumerate()):
        assert time.monotonic() < end, "the thread is still there"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seq_len": 0}, "seq_len 0"),
        ({"batch_size": 3, "world_size": 2}, "cannot be shared by 2"),
        ({"rank": 2, "world_size": 2}, "ranks are 0 to 1"),
        ({"dtype": "float32"}, "one of int64"),
        ({"seq_len": 10**6}, "too few for a sequence"),
        ({"holdout": 1.5}, "less than 1"),
    ],
)
def test_settings_that_cannot_be(web: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Loader(web, **options(**wrong))


def test_more_shards_than_a_process_may_have_files_open(tmp_path: Path) -> None:
    """More shards than a process may have files open."""
    write_dataset(tmp_path / "many", [[[i % 250, EOS, 1, 2, 3, EOS]] for i in range(3000)])
    loader = Loader(tmp_path / "many", seq_len=4, batch_size=100)
    rows = [row for batch in take(loader, loader.steps_per_epoch) for row in batch]
    assert len(rows) == (3000 * 6 - 1) // 4 // 100 * 100
