"""A run that is stopped anywhere goes on with the very batches it would have seen, on any number of ranks."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import pytest
from dataset import random_documents, write_dataset

from headrace import Loader, Mixture

STEPS = 50


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("data")
    for index, shards in enumerate((4, 2, 1)):
        write_dataset(root / f"d{index}", [random_documents(10 * index + shard, 40) for shard in range(shards)])
    return [str(root / f"d{index}") for index in range(3)]


def mixture_of(kind: str, folders: list[str]) -> Mixture:
    a, b, c = folders
    return {
        "one": Mixture(a),
        "two": Mixture({a: 0.7, b: 0.3}),
        "changing": Mixture({a: 0.7, b: 0.3}, changes={101: {a: 0.1, c: 0.9}, 250: [a, b, c]}),
    }[kind]


def open_ranks(mixture: Mixture, world_size: int, **more: Any) -> list[Loader]:
    shape = {"seq_len": 16, "batch_size": 8, "seed": 5, **more}
    return [Loader(mixture, rank=rank, world_size=world_size, **shape) for rank in range(world_size)]


def global_batch(ranks: list[Loader]) -> list[list[int]]:
    return list(itertools.chain.from_iterable(next(rank).tokens.tolist() for rank in ranks))


@pytest.mark.parametrize("packing", ["concat", "best-fit"])
@pytest.mark.parametrize("kind", ["one", "two", "changing"])
def test_resuming_at_every_step_on_any_ranks_and_prefetch(folders: list[str], kind: str, packing: str) -> None:
    mixture = mixture_of(kind, folders)
    whole = open_ranks(mixture, 1, packing=packing)
    expected, states = [], []
    for _ in range(STEPS):
        states.append(json.dumps(whole[0].state_dict(), sort_keys=True))
        expected.append(global_batch(whole))
    for world_size, prefetch in ((1, 3), (2, 1), (4, 2)):
        ranks = open_ranks(mixture, world_size, prefetch=prefetch, packing=packing)
        for step in range(STEPS):
            for rank in ranks:
                rank.load_state_dict(json.loads(states[step]))
            assert [global_batch(ranks) for _ in expected[step : step + 2]] == expected[step : step + 2]


def test_another_batch_size_goes_on_at_the_same_sample(folders: list[str]) -> None:
    mixture = mixture_of("changing", folders)
    whole = open_ranks(mixture, 1)[0]
    expected = [row for _ in range(20) for row in next(whole).tokens.tolist()]
    first = open_ranks(mixture, 1)[0]
    rows = [row for _ in range(9) for row in next(first).tokens.tolist()]
    second = open_ranks(mixture, 1, batch_size=4)[0]
    second.load_state_dict(first.state_dict())
    rows += [row for _ in range(22) for row in next(second).tokens.tolist()]
    assert rows == expected
    with pytest.raises(Exception, match="no whole number of batches of 5"):
        open_ranks(mixture, 1, batch_size=5)[0].load_state_dict(first.state_dict())


def test_only_the_first_chunks(folders: list[str]) -> None:
    loader = open_ranks(Mixture(folders[0]), 1, max_chunks=16)[0]
    assert loader.steps_per_epoch == 2
    rows = [tuple(row) for _ in range(4) for row in next(loader).tokens.tolist()]
    front = Loader(folders[0], seq_len=16, batch_size=16, shuffle=False)
    assert sorted(rows) == sorted(2 * [tuple(row) for row in next(front).tokens.tolist()])


def test_any_step_at_once(folders: list[str]) -> None:
    loader = open_ranks(mixture_of("changing", folders), 1)[0]
    expected = [next(loader).tokens.tolist() for _ in range(STEPS)]
    assert [loader.batch_at(step).tokens.tolist() for step in reversed(range(STEPS))] == expected[::-1]
    assert loader.step == STEPS


def test_a_pickled_loader_goes_on_where_it_stands(folders: list[str]) -> None:
    loader = open_ranks(mixture_of("two", folders), 1)[0]
    next(loader)
    copied = pickle.loads(pickle.dumps(loader))
    assert [next(copied).tokens.tolist() for _ in range(5)] == [next(loader).tokens.tolist() for _ in range(5)]


def test_another_packing_is_refused(folders: list[str]) -> None:
    state = open_ranks(Mixture(folders[0]), 1, packing="best-fit")[0].state_dict()
    with pytest.raises(Exception, match="fingerprints"):
        open_ranks(Mixture(folders[0]), 1)[0].load_state_dict(state)
