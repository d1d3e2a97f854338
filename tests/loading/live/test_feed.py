"""Live batches are those of the prepared dataset, in an order that threads and ranks do not change."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest_live import BATCH_SIZE, SEQ_LEN, WINDOW, batches, documents, open_feed, take, write_jsonl, write_parquet
from headrace import Loader, prepare
from headrace.loading.live import LiveFeed, LiveText, walk
from headrace.loading.order import derived_seed, permute
from headrace.sources import ReadOptions, Source, open_source, read_spans


def txt_folder(folder: Path) -> Path:
    folder.mkdir()
    for number, text in enumerate(documents(4, 30)):
        (folder / f"{number}.txt").write_text(text or "-")
    return folder


def parquet_file(path: Path) -> Path:
    write_parquet(path, documents(6, 40))
    return path


@pytest.mark.parametrize("tokenizer", ["headrace-32k", "bytes"])
@pytest.mark.parametrize("kind", ["jsonl", "txt", "parquet"])
def test_unshuffled_batches_are_those_of_the_prepared_dataset(
    kind: str, tokenizer: str, corpus: Path, tmp_path: Path
) -> None:
    """Over more than two epochs, with the boundaries of documents, and for one file in many units."""
    source = {
        "jsonl": lambda: corpus,
        "txt": lambda: txt_folder(tmp_path / "texts"),
        "parquet": lambda: parquet_file(tmp_path / "rows.parquet"),
    }[kind]()
    prepare(source, out=tmp_path / "data", tokenizer=tokenizer)
    options: dict[str, Any] = {"seq_len": SEQ_LEN, "batch_size": BATCH_SIZE, "shuffle": False}
    loader = Loader(tmp_path / "data", **options, documents=True)
    live = LiveText(source, tokenizer=tokenizer, threads=2)
    opened = LiveFeed(live, **options, with_boundaries=True)
    assert len(live.units) > 5
    assert loader.steps_per_epoch > 10
    for step in range(loader.steps_per_epoch * 2 + 5):
        mine, theirs = opened.next(), next(loader)
        assert mine.step == step
        assert mine.tokens.dtype == theirs.tokens.dtype
        assert mine.tokens.tobytes() == theirs.tokens.tobytes()
        assert mine.boundaries is not None
        assert theirs.boundaries is not None
        for one, other in zip(mine.boundaries, theirs.boundaries, strict=True):
            assert np.array_equal(one, other)
    opened.stop()


def test_a_large_document_among_small_ones(tmp_path: Path) -> None:
    """Many blocks out of one document, and a document larger than all that may be tokenized ahead."""
    texts = ["one", "x y\n" * 5_000, "two", "z " * 9_000]
    write_jsonl(tmp_path / "a.jsonl", texts)
    prepare(tmp_path / "a.jsonl", out=tmp_path / "data")
    loader = Loader(tmp_path / "data", seq_len=64, batch_size=1, shuffle=False)
    opened = LiveFeed(LiveText(tmp_path / "a.jsonl", group=1), seq_len=64, batch_size=1, shuffle=False)
    for _ in range(loader.steps_per_epoch + 2):
        assert opened.next().tokens.tolist() == next(loader).tokens.tolist()
    opened.stop()


def test_a_shuffled_epoch_is_the_units_permuted_and_the_chunks_within_windows(corpus: Path) -> None:
    live = LiveText(corpus, window=WINDOW)
    reference, eos, window = live.tokenizer.reference(), live.eos, WINDOW // SEQ_LEN
    opened, seen = open_feed(live, batch_size=1), []
    for epoch in range(3):
        tokens: list[int] = []
        for unit in permute(np.arange(len(live.units)), len(live.units), seed=5, epoch=epoch).tolist():
            texts = [text for batch in read_spans(live.units[unit], live.source.options) for text in batch.texts]
            tokens += [one for row in reference.encode(texts) for one in (*row.tolist(), eos)]
        rows = [tokens[i : i + SEQ_LEN + 1] for i in range(0, len(tokens) - SEQ_LEN, SEQ_LEN)]
        found = [batch[0] for batch in take(opened, len(rows))]
        assert found != rows
        for block, first in enumerate(range(0, len(rows), window)):
            part = rows[first : first + window]
            turns = permute(np.arange(len(part)), len(part), seed=derived_seed(5, epoch + 1), epoch=block)
            assert found[first : first + window] == [part[turn] for turn in turns.tolist()]
        seen.append(found)
    assert seen[0] != seen[1] != seen[2]
    opened.stop()


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_order_depends_on_neither_threads_nor_groups_nor_prefetch_nor_ranks(corpus: Path, shuffle: bool) -> None:
    expected = batches(LiveText(corpus, threads=1, window=WINDOW), 40, shuffle=shuffle)
    for threads, group, prefetch in ((1, 3, 2), (2, 1, 1), (3, None, 7), (3, 1, 4)):
        live = LiveText(corpus, threads=threads, group=group, window=WINDOW)
        assert batches(live, 40, shuffle=shuffle, prefetch=prefetch) == expected
    for ranks in (2, 4):
        part = BATCH_SIZE // ranks
        live = LiveText(corpus, window=WINDOW)
        shares = [slice(rank * part, (rank + 1) * part) for rank in range(ranks)]
        parts = [batches(live, 40, shuffle=shuffle, share=share) for share in shares]
        assert [list(itertools.chain.from_iterable(step)) for step in zip(*parts, strict=True)] == expected


def test_units_are_what_can_be_read_on_its_own(tmp_path: Path) -> None:
    """A compressed file is one, however large; rows that run on from file to file are one together."""
    write_jsonl(tmp_path / "a.jsonl.gz", documents(1, 400))
    write_jsonl(tmp_path / "b.jsonl", documents(2, 50))
    source = open_source(tmp_path)
    assert source.files[0].size > 2 * walk.UNIT_BYTES
    units = walk.find_units(source)
    assert [len(unit) for unit in units] == [1] * len(units)
    assert [Path(unit[0].path).name for unit in units].count("a.jsonl.gz") == 1
    assert len(units) > 5
    joined = walk.find_units(Source(source.name, source.files, ReadOptions(join="wikitext")))
    assert len(joined) == 1
    assert {Path(span.path).name for span in joined[0]} == {"a.jsonl.gz", "b.jsonl"}


def test_another_seed_is_another_order(corpus: Path) -> None:
    live = LiveText(corpus, window=WINDOW)
    assert batches(live, 5, seed=1) != batches(live, 5, seed=2)
