"""Process-wide settings: the seeds, and what is left alone on a CPU."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from headrace.training.backend import seed_everything, setup_backend


@pytest.fixture(autouse=True)
def _settings_put_back() -> Iterator[None]:
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn
    benchmark, tf32 = cudnn.benchmark, cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(matmul)
    cudnn.benchmark, cudnn.allow_tf32 = benchmark, tf32


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), torch.rand(()).item()


@pytest.mark.parametrize("seed", [0, 7, 2**32 + 1, 2**63 - 1])
def test_same_seed_same_numbers(seed: int) -> None:
    seed_everything(seed)
    first = draw()
    assert draw() != first
    seed_everything(seed)
    assert draw() == first


def test_other_seed_other_numbers() -> None:
    seed_everything(1)
    first = draw()
    seed_everything(2)
    assert all(a != b for a, b in zip(first, draw(), strict=True))


def test_tf32_and_tuning_are_for_cuda_alone() -> None:
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False
    setup_backend("cpu")
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cudnn.benchmark
    setup_backend("cuda")
    assert torch.get_float32_matmul_precision() == "high"
    assert torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.allow_tf32
