"""What the tests of the adapters share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dataset import random_documents, write_dataset


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Matrices this small are only slowed down by a second thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data", [random_documents(seed, 60) for seed in range(3)])
    return tmp_path / "data"
