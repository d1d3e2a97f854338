"""What to change about data that come too slowly: a table of causes with thresholds, each by what was measured."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from headrace.diagnosis.data_findings import Findings, said, wait_share
from headrace.diagnosis.report import MOST, Fix
from headrace.diagnosis.tokenization_findings import percent
from headrace.files import human_bytes

ENOUGH = 1.2  # times the need; the loader's thread shares its cores with training, and rounds differ by as much
LEAST_LOST = 5.0  # seconds until it is in memory: below, nobody would do anything about it
MANY_SHARDS = 100  # below, the cause lies elsewhere
CROSSING = 0.05  # of the rows; at 19% a batch took 59-119 us where it takes 16 in two shards
BELOW_COPY = 0.5  # of the copy limit; above, memory is the limit and not the loader
AMPLIFIED = 2.0  # bytes read for each that is needed
FASTER_IN_ORDER = 2.0  # sequential against random reads; less is not worth another sequence length


class Rule(NamedTuple):
    """One row of the table."""

    name: str
    cause: str
    evidence: str
    threshold: str
    advice: str
    look: Callable[[Findings], Fix | None]


def fixes(findings: Findings) -> list[Fix]:
    """Those that hold, the largest gain first, otherwise in the order of the table."""
    found = [fix for rule in TABLE if (fix := rule.look(findings)) is not None]
    return sorted(found, key=lambda fix: -fix.speedup)


def slow(findings: Findings, rate: float | None) -> bool:
    """Measured, and too little for what training is known to need."""
    return findings.need is not None and rate is not None and rate < ENOUGH * findings.need


def gain(findings: Findings, rate: float | None, then: float) -> float:
    """Of a step that is fed at one rate, if it were fed at another; more than training needs brings nothing."""
    if findings.need is None or rate is None:
        return 1.0
    return min(MOST, max(1.0, min(findings.need, then) / min(findings.need, rate)))


def from_memory(findings: Findings) -> float:
    """The gain if the data came from memory."""
    return gain(findings, findings.cold_rate, findings.warm.value)


def from_faster_loader(findings: Findings) -> float:
    """The gain if gathering took no time; where every epoch comes from the disk, that is still the limit."""
    warm, cold = findings.warm.value, findings.cold_rate
    if findings.fits or cold is None:
        return gain(findings, warm, float("inf"))
    return gain(findings, min(warm, cold), cold)


def network_filesystem(findings: Findings) -> Fix | None:
    mount, cold = findings.mount, findings.cold_rate
    if mount is None or not mount.network or cold is None or not (findings.need is None or slow(findings, cold)):
        return None
    return Fix(
        rule="network_filesystem",
        title=f"The data lie on a network file system ({mount.filesystem})",
        evidence=f"{mount.device}; {cold:,.0f} tokens/s cold, {findings.warm.value:,.0f} from memory{_waits(findings)}",
        advice=f"copy its {human_bytes(findings.bytes)} to a disk of this machine\n{_copy(findings, '/local')}",
        phase="data_wait",
        speedup=from_memory(findings),
    )


def disk_too_slow(findings: Findings) -> Fix | None:
    """Every epoch comes from the disk, and the disk gives less than training needs."""
    cold = findings.cold_rate
    if findings.fits or not slow(findings, cold) or findings.random is None or findings.sequential is None:
        return None
    if findings.mount is not None and findings.mount.network:
        return None  # that is the cause, and has its own row
    assert findings.need is not None
    rows, needed = findings.random.value, findings.bytes_per_second(findings.need)
    advice = ["a faster disk in this machine (NVMe), or a machine whose memory holds the dataset"]
    if findings.sequential.value >= FASTER_IN_ORDER * rows:
        advice.append(
            f"longer sequences: the disk gives {human_bytes(findings.sequential.value)}/s in order, and a sequence is "
            f"one read (--seq-len {2 * findings.seq_len} or more)"
        )
    return Fix(
        rule="disk_too_slow",
        title="The data do not fit into memory, and the disk is slower than training",
        evidence=f"{human_bytes(findings.bytes)} of data, {human_bytes(findings.memory.available)} of memory free; "
        f"training needs {human_bytes(needed)}/s, random reads of {human_bytes(findings.row_bytes)} give "
        f"{human_bytes(rows)}/s one at a time, the loader {human_bytes(findings.bytes_per_second(cold or 0.0))}/s"
        f"{_waits(findings)}",
        advice="\n".join(advice),
        phase="data_wait",
        speedup=from_memory(findings),
    )


def memory_limit(findings: Findings) -> Fix | None:
    """It would fit into the machine, but not into what this process may use of it."""
    limit, cold = findings.memory.limit, findings.cold_rate
    if limit is None or findings.bytes <= limit or findings.bytes > findings.memory.machine / 2:
        return None
    if findings.need is not None and not slow(findings, cold):
        return None
    return Fix(
        rule="memory_limit",
        title="The memory limit of this container is smaller than the dataset",
        evidence=f"{human_bytes(findings.bytes)} of data, a limit of {human_bytes(limit)}, and "
        f"{human_bytes(findings.memory.machine)} in the machine{_waits(findings)}",
        advice="raise the limit above the dataset and what training needs: pages that were read count against it, and "
        "are thrown out again when it is reached",
        phase="data_wait",
        speedup=from_memory(findings),
    )


def cold_start(findings: Findings) -> Fix | None:
    """Only the beginning waits: after it the data are in memory."""
    lost, reading = findings.lost_at_start(), findings.reading
    if lost is None or reading is None or lost < LEAST_LOST:
        return None
    shards = " ".join(f"{shlex.quote(name)}/*.bin" for name in findings.names)
    return Fix(
        rule="cold_start",
        title="Training waits for the disk until the data are in memory",
        evidence=f"it fits into memory, and {said(lost)} are lost once{_waits(findings)}; reading it in order takes "
        f"{said(reading)}",
        advice=f"read the dataset once before training\ncat {shards} > /dev/null\nor keep it in memory: "
        f"{_copy(findings, '/dev/shm')}",
        phase="data_wait",
    )


def read_amplification(findings: Findings) -> Fix | None:
    """More is read than is needed: whole pages for short rows, or reading ahead that nobody asked for."""
    read, cold = findings.amplification, findings.cold_rate
    if findings.fits or read is None or read < AMPLIFIED or not slow(findings, cold):
        return None
    assert findings.need is not None
    ahead = findings.access != "random"
    return Fix(
        rule="read_amplification",
        title="The disk reads more than a batch needs",
        evidence=f"{read:.1f} bytes from disk for each byte needed: rows of {human_bytes(findings.row_bytes)} in "
        f"pages of 4.1 kB, memory={findings.access!r}",
        advice="Loader(..., memory='random') reads nothing ahead"
        if ahead
        else "longer sequences (--seq-len), so that a row fills the pages it lies in",
        phase="data_wait",
        speedup=min(read, from_memory(findings)),
    )


def small_shards(findings: Findings) -> Fix | None:
    """Rows that go on in the next shard are put together one by one."""
    measured_slow = slow(findings, findings.warm.value) or (
        findings.need is None and findings.share_of_copy < BELOW_COPY
    )
    if findings.shards < MANY_SHARDS or findings.crossing < CROSSING or not measured_slow:
        return None
    return Fix(
        rule="small_shards",
        title="The dataset is in many small shards",
        evidence=f"{findings.shards:,} shards of {human_bytes(findings.bytes / findings.shards)}: "
        f"{percent(findings.crossing)} of the rows go on in the next one; the loader reaches "
        f"{percent(findings.share_of_copy)} of the copy limit",
        advice="prepare it again with larger tasks: each makes a shard\nheadrace prepare SOURCE --out DIR (without "
        "--task-bytes)",
        phase="data_wait",
        speedup=from_faster_loader(findings),
    )


def loader_too_slow(findings: Findings) -> Fix | None:
    """Even from memory one thread does not gather as fast as training eats."""
    if not slow(findings, findings.warm.value):
        return None
    assert findings.need is not None
    if findings.share_of_copy < BELOW_COPY:
        advice = (
            f"more tokens in a batch: at {findings.batch_size} x {findings.seq_len:,} most of the time is not copying"
        )
    elif findings.dtype != findings.stored:
        advice = f"Loader(..., dtype={findings.stored!r}): ids travel as they are stored, and are widened on the device"
    else:
        advice = "one process for each device, each with its own loader: a rank gathers only its part of a batch"
    return Fix(
        rule="loader_too_slow",
        title="The loader is slower than training, even from memory",
        evidence=f"{findings.warm.value:,.0f} tokens/s, {findings.need:,.0f} needed; a plain copy gives "
        f"{findings.copy.value:,.0f}",
        advice=advice,
        phase="data_wait",
        speedup=from_faster_loader(findings),
    )


def _waits(findings: Findings) -> str:
    if findings.need is None or findings.cold_rate is None:
        return ""
    return f"; the step waits {percent(wait_share(findings.need, findings.cold_rate))} when cold"


def _copy(findings: Findings, where: str) -> str:
    folders = " ".join(map(shlex.quote, findings.names))
    return f"cp -r {folders} {where}/, and train on {where}/{shlex.quote(Path(findings.names[0]).absolute().name)}"


TOO_LITTLE = "under 1.2 times the need"
TABLE = (
    Rule("network_filesystem", "the shards lie on a network file system", "type of the mount, cold rate",
         f"cold rate {TOO_LITTLE}, or no need given", "copy them to a local disk", network_filesystem),
    Rule("memory_limit", "a container may not keep what the machine could", "limit of the control group, size, memory",
         f"limit below the dataset, dataset below half of the machine; cold rate {TOO_LITTLE}, or no need given",
         "raise the limit", memory_limit),
    Rule("disk_too_slow", "every epoch comes from a disk that is too slow", "size, free memory, cold rate, disk rates",
         f"more than half of the free memory, and cold rate {TOO_LITTLE}", "faster disk, more memory, longer sequences",
         disk_too_slow),
    Rule("read_amplification", "the disk reads more than is needed", "bytes read from disk, bytes in the batches",
         f"2 bytes for each needed, no room in memory, and cold rate {TOO_LITTLE}", "memory='random', longer sequences",
         read_amplification),
    Rule("small_shards", "rows go on from shard to shard", "shards, tokens, share of the copy limit",
         "100 shards, 5% of the rows; warm rate under 1.2 times the need, or under half of the copy limit",
         "prepare with larger tasks", small_shards),
    Rule("loader_too_slow", "one thread gathers slower than training eats", "warm rate, copy limit",
         f"warm rate {TOO_LITTLE}", "larger batches, narrower ids, a process per device", loader_too_slow),
    Rule("cold_start", "what was not read yet comes from the disk", "cold rate, size, sequential rate",
         "fits into memory, 5 s lost until it is there", "read it once before training", cold_start),
)  # fmt: skip
