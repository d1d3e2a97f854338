"""Whether training waits for a prepared dataset: the loader's rate, the copy limit, the disk, the page cache."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headrace.diagnosis.data_bench import Bench, Colds, Progress, Warm
from headrace.diagnosis.data_findings import Findings, verdict
from headrace.diagnosis.data_rules import fixes
from headrace.diagnosis.data_timing import Cold
from headrace.diagnosis.report import Report
from headrace.errors import UsageError
from headrace.loading.mixture import Mix, Mixture

DROPPED = "The dataset's pages were dropped from the page cache: the next run reads them from the disk once."


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    data: Mix
    seq_len: int | None = None  # None: the dataset's chunk size
    batch_size: int = 16  # as in `headrace train`
    dtype: str = "int64"
    memory: str = "auto"
    seconds: float = 10.0
    tokens_per_second: float | None = None  # of training, on all devices of this machine
    run: Path | None = None  # of headrace, to take that from
    seed: int = 0
    keep_cache: bool = False  # drop nothing, and measure nothing cold

    def __post_init__(self) -> None:
        for flag, value in (("seconds", self.seconds), ("tokens-per-second", self.tokens_per_second)):
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"--{flag} {value:g} cannot be: it must be above 0.")
        if self.run is not None and self.tokens_per_second is not None:
            raise UsageError("--run and --tokens-per-second both say how fast training is. Leave one of them out.")

    @property
    def names(self) -> list[str]:
        return list(Mixture(self.data).names)

    def need(self) -> float | None:
        if self.run is None:
            return self.tokens_per_second
        from headrace.diagnosis.tokenization import rate_of_run  # here, because it brings everything that tokenizes

        return rate_of_run(self.run)


def diagnose_data(config: DataConfig, progress: Progress = lambda text: None) -> Report:
    started = time.perf_counter()
    need = config.need()
    bench = Bench(
        config.data,
        seq_len=config.seq_len,
        batch_size=config.batch_size,
        dtype=config.dtype,
        memory=config.memory,
        seconds=config.seconds,
        seed=config.seed,
    )
    progress("looking at the page cache")
    resident = None if bench.cache.unseen else bench.cache.resident()
    warm = bench.measure_warm(progress)
    cold = Colds(reason="left out by --keep-cache.") if config.keep_cache else bench.measure_cold(progress)
    findings = _findings(config, need, bench, resident, warm, cold)
    return Report(
        kind="data",
        subject=shlex.join(config.names),
        verdict=verdict(findings),
        tokens_per_second=need,
        fixes=fixes(findings),
        missing=list(_missing(bench, cold)),
        facts={
            **dict(_figures(findings)),
            "needs": findings.needs(),
            "measured": msgspec.to_builtins(findings),
            "notes": [*warm.notes, *([DROPPED] if resident and cold.sequential else [])],
            "seconds": round(time.perf_counter() - started, 2),
        },
    )


def _findings(
    config: DataConfig, need: float | None, bench: Bench, resident: int | None, warm: Warm, cold: Colds
) -> Findings:
    return Findings(
        names=config.names,
        need=need,
        seq_len=bench.seq_len,
        batch_size=config.batch_size,
        dtype=config.dtype,
        stored=bench.stored.name,
        row_bytes=bench.row_bytes,
        tokens=sum(store.total_tokens for store in bench.stores),
        bytes=bench.cache.size,
        shards=len(bench.cache.files),
        access=bench.access,
        mount=bench.mount,
        memory=bench.memory,
        resident=resident,
        warm=warm.loader,
        warm_minor=warm.minor,
        warm_major=warm.major,
        warm_open=warm.open_seconds,
        warm_first=warm.first_seconds,
        copy=warm.copy,
        cold=cold.loader,
        sequential=cold.sequential,
        random=cold.random,
    )


def _missing(bench: Bench, cold: Colds) -> Iterator[str]:
    if bench.cache.unseen:
        yield f"Pages in the cache: {bench.cache.unseen}"
    if cold.reason:
        yield f"Cold reading: {cold.reason}"
    if cold.loader is not None and cold.loader.read_bytes is None:
        yield "Bytes read from disk: /proc/self/io does not count them here."


def _figures(findings: Findings) -> Iterator[tuple[str, Any]]:
    """Those that a page shows; everything is under `measured`."""
    yield "sequence_length", findings.seq_len
    yield "batch_size", findings.batch_size
    yield "dtype", findings.dtype
    yield "memory", findings.access
    yield "dataset_tokens", findings.tokens
    yield "dataset_bytes", findings.bytes
    yield "shards", findings.shards
    if findings.mount is not None:
        yield "filesystem", findings.mount.filesystem
    if findings.resident is not None:
        yield "bytes_in_page_cache_before", findings.resident
    yield "bytes_of_memory_available", findings.memory.available
    yield "fits_into_memory", findings.fits
    yield "warm_tokens_per_second", findings.warm.value
    yield "copy_limit_tokens_per_second", findings.copy.value
    yield "warm_share_of_copy_limit", findings.share_of_copy
    yield "warm_minor_faults_per_batch", findings.warm_minor
    yield "warm_open_seconds", findings.warm_open
    yield "warm_first_batch_seconds", findings.warm_first
    if findings.cold is not None:
        yield from _cold_figures(findings.cold, findings)
    if findings.sequential is not None and findings.random is not None:
        yield "disk_sequential_bytes_per_second", findings.sequential.value
        yield "disk_random_bytes_per_second", findings.random.value


def _cold_figures(cold: Cold, findings: Findings) -> Iterator[tuple[str, Any]]:
    yield "cold_tokens_per_second", cold.tokens_per_second.value
    yield "cold_open_seconds", cold.open_seconds.value
    yield "cold_first_batch_seconds", cold.first_seconds.value
    yield "cold_minor_faults_per_batch", cold.minor
    yield "cold_major_faults_per_batch", cold.major
    yield "bytes_needed_per_batch", findings.batch_bytes
    if cold.read_bytes is not None:
        yield "cold_bytes_read_per_batch", cold.read_bytes
        yield "read_amplification", findings.amplification
