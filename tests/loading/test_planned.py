"""Best-fit batches: whole documents, padding only at the end, and a loss that never looks across a document's end."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from dataset import EOS, random_documents, write_dataset

from headrace import Loader, TokenStore
from headrace.loading import Batch
from headrace.packing import best_fit, save_plan

PAD = EOS  # the dataset names no padding token
L = 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data", [random_documents(seed, 50, longest=50) for seed in range(3)])
    return tmp_path / "data"


def pieces(batch: Batch) -> list[list[int]]:
    """The runs of tokens between the boundaries, padding left out."""
    found = batch.boundaries
    assert found is not None
    ends = found.cu_seqlens.tolist()
    flat, mask = batch.input_ids.ravel(), found.loss_mask.ravel()
    runs = [(flat[a:b].tolist(), mask[a:b]) for a, b in itertools.pairwise(ends)]
    return [run for run, kept in runs if kept.any() or len(run) == 1 or set(run) != {PAD}]


def test_every_document_that_fits_comes_whole_once_an_epoch(folder: Path) -> None:
    store = TokenStore(folder)
    short = [store.document(i).tolist() for i in range(store.num_documents)]
    expected = sorted(document for document in short if 1 < len(document) <= L)
    loader = Loader(folder, seq_len=L, batch_size=1, packing="best-fit")
    seen = [piece for _ in range(loader.steps_per_epoch) for piece in pieces(next(loader))]
    assert sorted(piece for piece in seen if piece in expected) == expected


def test_the_loss_leaves_out_document_ends_and_padding(folder: Path) -> None:
    loader = Loader(folder, seq_len=L, batch_size=4, packing="best-fit")
    trained = 0
    for _ in range(loader.steps_per_epoch):
        batch = next(loader)
        found = batch.boundaries
        assert found is not None
        next_document = np.concatenate([found.doc_ids[:, 1:], np.full((4, 1), -1)], axis=1)
        assert not found.loss_mask[found.doc_ids != next_document].any()
        trained += int(found.loss_mask.sum())
    store = TokenStore(folder)
    plan = best_fit(store.document_lengths(), L)
    drawn = loader.steps_per_epoch * 4
    every = int((plan.pieces[:, 1] - 1).sum())  # each piece has one token that is no one's input
    assert trained == every if drawn == plan.num_chunks else trained <= every
    assert trained >= every * drawn // plan.num_chunks - 4 * L


def test_a_saved_plan_is_used(folder: Path) -> None:
    store = TokenStore(folder)
    plan = best_fit(store.document_lengths(), L)
    backwards = plan._replace(
        pieces=np.concatenate([plan.chunk(i) for i in reversed(range(plan.num_chunks))]),
        offsets=np.concatenate([[0], np.cumsum(np.diff(plan.offsets)[::-1])]),
    )
    save_plan(folder, backwards)
    batch = next(Loader(folder, seq_len=L, batch_size=1, packing="best-fit", shuffle=False))
    start, length = plan.chunk(plan.num_chunks - 1)[0].tolist()
    assert batch.tokens[0, :length].tolist() == store.tokens(start, start + length).tolist()
