"""Measurements of loading, made up, for the tests of what they mean."""

from __future__ import annotations

from typing import Any

from headrace.diagnosis.data_findings import Findings
from headrace.diagnosis.data_machine import Memory, Mount
from headrace.diagnosis.data_rounds import Spread
from headrace.diagnosis.data_timing import Cold


def flat(value: float) -> Spread:
    return Spread(value, value, value, 3)


def made_up(*, cold: float | None = 2e6, read: float | None = 65_568.0, **more: Any) -> Findings:
    """A billion tokens in 2 GB on a disk of 500 MB/s, in a machine of 64 GB: 1 G tokens/s from memory."""
    of_cold = cold and Cold(
        tokens_per_second=flat(cold),
        open_seconds=flat(0.001),
        first_seconds=flat(0.02),
        batches=100,
        minor=20.0,
        major=1.0,
        read_bytes=read,
    )
    settings: dict[str, Any] = {
        "names": ["data/web"],
        "need": 1e6,
        "seq_len": 2048,
        "batch_size": 16,
        "dtype": "int64",
        "stored": "uint16",
        "row_bytes": 4098,
        "tokens": 1_000_000_000,
        "bytes": 2_000_000_000,
        "shards": 8,
        "access": "random",
        "mount": Mount("/dev/nvme0n1", "ext4"),
        "memory": Memory(available=60_000_000_000, machine=64_000_000_000, limit=None),
        "resident": 0,
        "warm": flat(1e9),
        "warm_minor": 0.0,
        "warm_major": 0.0,
        "warm_open": 0.001,
        "warm_first": 0.002,
        "copy": flat(1.25e9),
        "cold": of_cold,
        "sequential": flat(500e6) if cold else None,
        "random": flat(40e6) if cold else None,
    }
    return Findings(**{**settings, **more})
