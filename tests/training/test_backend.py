"""Process-wide settings: the seeds, and what is left alone on a CPU."""

from __future__ import annotations

import random
import subprocess
import sys
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


def test_freed_memory_stays_with_the_process() -> None:
    """Counted in page faults of a process of its own: with the default every block comes back by faults."""
    code = """
import resource, sys, torch
torch.set_num_threads(1)
if sys.argv[1] == "keep":
    from headrace.training.host_memory import keep_freed_memory
    keep_freed_memory()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3): torch.ones(16 << 20)
before = faults()
for _ in range(5): torch.ones(16 << 20)
print(faults() - before)
"""
    counts = [
        int(subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout)
        for how in ("keep", "default")
    ]
    if counts[1] < 1000:
        pytest.skip("this C library keeps freed memory by itself")
    assert counts[0] < counts[1] / 10
