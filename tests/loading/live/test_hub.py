"""Live text from the hub: the same batches as from the same files on a disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conftest_hub import hub_client, hub_server, make_texts, parquet, stand_in  # noqa: F401 - fixtures
from headrace import LiveText, Loader
from headrace.loading.live import walk
from hub_server import HubServer


def test_batches_are_those_of_the_same_files_on_a_disk(
    stand_in: HubServer,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walk, "REMOTE_UNIT_BYTES", walk.UNIT_BYTES)
    texts = make_texts(300)
    files = {
        "a.parquet": parquet(texts[:100], 20),
        "b.parquet": parquet(texts[100:200], 20),
        "c.parquet": parquet(texts[200:], 20),
    }
    stand_in.push("datasets", "o/n", files)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    batches = []
    for place in ("hf://datasets/o/n", [tmp_path / name for name in files]):
        live = LiveText(place, tokenizer="bytes", threads=1, report=lambda line: None)
        loader = Loader(live, seq_len=64, batch_size=4, seed=3)
        batches.append([np.array(next(loader)[0]) for _ in range(5)])
        loader.close()
    assert np.array_equal(*batches)
    assert stand_in.asked("/resolve/")
