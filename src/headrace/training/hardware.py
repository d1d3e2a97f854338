"""What the machine could do and what it is doing: peak rate, use of the cores, memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from typing import Any

import torch

from headrace.errors import UsageError

# Dense peak of the tensor cores, FLOP/s, by the maker's data sheets; the first name found in the device's name counts.
GPU_PEAKS = {
    "B200": {"bf16": 2250e12, "fp16": 2250e12, "fp32": 1125e12},
    "H200": {"bf16": 989e12, "fp16": 989e12, "fp32": 494e12},
    "H100 PCIe": {"bf16": 756e12, "fp16": 756e12, "fp32": 378e12},
    "H100": {"bf16": 989e12, "fp16": 989e12, "fp32": 494e12},
    "L40S": {"bf16": 362e12, "fp16": 362e12, "fp32": 183e12},
    "A100": {"bf16": 312e12, "fp16": 312e12, "fp32": 156e12},
    "A10": {"bf16": 125e12, "fp16": 125e12, "fp32": 62.5e12},
    "L4": {"bf16": 121e12, "fp16": 121e12, "fp32": 60e12},
    "V100": {"fp16": 125e12, "fp32": 15.7e12},
    "T4": {"fp16": 65e12, "fp32": 8.1e12},
    "RTX 5090": {"bf16": 209e12, "fp16": 209e12, "fp32": 105e12},
    "RTX 4090": {"bf16": 165e12, "fp16": 165e12, "fp32": 83e12},
    "RTX 3090": {"bf16": 71e12, "fp16": 71e12, "fp32": 36e12},
}
MATRIX = 768


def pick_device(name: str) -> torch.device:
    """The device of this name; "auto" takes CUDA, then Apple's, then the CPU."""
    if name != "auto":
        return _named(name)
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _named(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"--device {name} cannot be used here: {reason}. Use --device auto or cpu.") from error
    return device


def peak_flops(device: torch.device, precision: str) -> float | None:
    """FLOP/s that the device could do: from its data sheet, or for a CPU measured now; None if nobody knows."""
    if device.type == "cpu":
        return _measured_peak()
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    rates = next((rates for key, rates in GPU_PEAKS.items() if key in name), {})
    return rates.get(precision)


def _measured_peak() -> float:
    """The best of a few matrix products, with as many threads as training uses; takes about 0.1 s."""
    a, b = torch.randn(MATRIX, MATRIX), torch.randn(MATRIX, MATRIX)
    out = torch.empty(MATRIX, MATRIX)
    best = float("inf")
    for _ in range(6):
        started = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - started)
    return 2 * MATRIX**3 / best


class Usage:
    """Use of the CPU by this process, and of the GPU where there is one, since the last time it was asked."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, Any]:
        wall, cpu = time.perf_counter(), time.process_time()
        share = (cpu - self._cpu) / max(1e-9, wall - self._wall) / (os.cpu_count() or 1)
        self._wall, self._cpu = wall, cpu
        return {"cpu": round(share, 4), "memory": _peak_memory(), **self._gpu()}

    def _gpu(self) -> dict[str, Any]:
        if self._device.type != "cuda":
            return {}
        found: dict[str, Any] = {"gpu_memory": torch.cuda.max_memory_allocated(self._device)}
        try:
            found["gpu"] = torch.cuda.utilization(self._device) / 100
        except Exception:  # nvidia-ml-py is not there, or the driver does not say
            pass
        return found


def _peak_memory() -> int:
    """Bytes; the system counts in KiB, and on macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
