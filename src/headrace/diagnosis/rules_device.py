"""Rules about the device and the cores: syncs, copies, threads, the optimizer."""

from __future__ import annotations

from collections.abc import Callable

from headrace.diagnosis.evidence import Copies, Evidence
from headrace.diagnosis.report import COMPUTE, Fix, Site
from headrace.diagnosis.rules_base import (
    Rule,
    cost,
    first_site,
    matters,
    milliseconds,
    number,
    percent,
    phase_of,
    plural,
)

SYNC = 0.05  # of a step
SYNC_LINE = 0.10  # of all syncs; lines below it are not named
COPY = 0.05  # of a step
CROWDED = 1.5  # runnable threads per core
MOST_CROWDED = 3.0  # 32 threads on 2 cores took 3.4 times as long as one, 2 on 2 taken ones 2 to 5 times
COMPUTING = 0.30  # of a step; where less is computed, threads are not what is slow
OPTIMIZER = 0.10  # of a step
LEAST_TENSORS = 20  # with fewer there is little to gather
GATHERED = 0.6  # of its time, that fused saves: 62% with 100 tensors of 256 x 256 on a CPU, 95% with 32 x 32
LOGGING = 0.05  # of a step

INSTEAD = {  # by what was called
    "print": "print once per log interval, not in every step",
    "nonzero": "keep the mask on the device: torch.where(mask, value, other) needs no sizes on the host",
    "mask": "keep the mask on the device: torch.where(mask, value, other) needs no sizes on the host",
    "bool": "decide on the device: torch.where(condition, a, b) instead of an if on a tensor",
}


def sync_in_loop(evidence: Evidence) -> Fix | None:
    waited = milliseconds(evidence, "host_sync")
    sites = [site for site in phase_of(evidence, "host_sync").sites if site.ms >= SYNC_LINE * waited]
    saves = min(waited, sum(site.ms for site in sites)) or waited
    if not matters(evidence, saves, SYNC):
        return None
    site, others = (sites[0], sites[1:]) if sites else (None, [])
    times = f"{_times(site.calls)}; " if site else ""
    more = "".join(f", {other.place}" for other in others)
    return Fix(
        rule="sync_in_loop",
        title="The loop asks the device for numbers and waits for them",
        evidence=f"{times}{cost(evidence, saves)}" + (f"; also at {more[2:]}" if more else ""),
        advice=_sync_advice(site),
        phase="host_sync",
        site=site,
        saves_ms=saves,
    )


def _times(calls: float) -> str:
    return f"{number(calls)} times a step" if calls >= 1 else f"every {number(1 / calls) if calls else '?'} steps"


def _sync_advice(site: Site | None) -> str:
    called = f"{site.what} {site.code}".lower() if site else ""
    for word, advice in INSTEAD.items():
        if site and word in site.what.lower():
            return advice
    name = "the loss" if "loss" in called else "the value"
    return (
        f"read {name} once per log interval\n"
        "keep value.detach() on the device (total += loss.detach()), and call .item() when it is logged"
    )


def blocking_copies(evidence: Evidence) -> Fix | None:
    return _copies(
        evidence,
        "blocking_copies",
        lambda copy: copy.blocking,
        "The step waits for its copies to the device",
        "copy beside the computation\nDataLoader(..., pin_memory=True) and batch.to(device, non_blocking=True)",
    )


def unpinned_memory(evidence: Evidence) -> Fix | None:
    return _copies(
        evidence,
        "unpinned_memory",
        lambda copy: not copy.blocking and copy.pinned is False,
        "Copies to the device come from memory that is not pinned",
        "pin the batches, or non_blocking=True does nothing\nDataLoader(..., pin_memory=True), or tensor.pin_memory()",
    )


def _copies(evidence: Evidence, rule: str, wrong: Callable[[Copies], bool], title: str, advice: str) -> Fix | None:
    found = sorted(filter(wrong, evidence.copies), key=lambda copy: -copy.site.ms)
    saves = min(milliseconds(evidence, "host_to_device"), sum(copy.site.ms for copy in found))
    if not found or not matters(evidence, saves, COPY):
        return None
    size = sum(copy.bytes for copy in found) / 1e6
    return Fix(
        rule=rule,
        title=title,
        evidence=f"{_times(found[0].site.calls)}, {number(size)} MB; {cost(evidence, saves)}",
        advice=advice,
        phase="host_to_device",
        site=found[0].site,
        saves_ms=saves,
    )


def oversubscribed_threads(evidence: Evidence) -> Fix | None:
    threads, busy = evidence.threads or 1, evidence.busy or 0.0
    crowd = (threads + busy) / max(evidence.cores, 1)
    computing = milliseconds(evidence, *COMPUTE)
    if threads < 2 or crowd < CROWDED or not matters(evidence, computing, COMPUTING):
        return None
    free = max(1, int(evidence.cores - busy + 0.5))
    others = f", {number(busy)} of them taken by other processes" if busy >= 0.5 else ""
    return Fix(
        rule="oversubscribed_threads",
        title="Threads of torch fight over the cores",
        evidence=f"{threads} threads on {plural(evidence.cores, 'core')}{others}; computing takes "
        f"{cost(evidence, computing)}",
        advice=f"compute with as many threads as cores are free\n"
        f"OMP_NUM_THREADS={free} before the command, or torch.set_num_threads({free})",
        phase="forward",
        site=first_site(evidence, "forward"),
        saves_ms=computing * (1 - 1 / min(crowd, MOST_CROWDED)),
    )


def eager_optimizer(evidence: Evidence) -> Fix | None:
    taken = milliseconds(evidence, "optimizer")
    slow = [entry for entry in evidence.optimizers if entry.one_by_one and entry.parameters >= LEAST_TENSORS]
    if not slow or not matters(evidence, taken, OPTIMIZER):
        return None
    entry = max(slow, key=lambda entry: entry.parameters)
    kernels = f", {number(entry.kernels)} operators a step" if entry.kernels else ""
    return Fix(
        rule="eager_optimizer",
        title="The optimizer goes through the parameters one by one",
        evidence=f"{entry.name} over {entry.parameters:,} tensors{kernels}; {cost(evidence, taken)}",
        advice=f"let it take all tensors at once\n{entry.name}(..., fused=True), or foreach=True on a GPU "
        "if it has no fused",
        phase="optimizer",
        site=entry.site,
        saves_ms=GATHERED * taken,
    )


def logging_in_loop(evidence: Evidence) -> Fix | None:
    taken = milliseconds(evidence, "logging")
    if not matters(evidence, taken, LOGGING):
        return None
    site = first_site(evidence, "logging")
    return Fix(
        rule="logging_in_loop",
        title="Logging takes a part of every step",
        evidence=(f"{_times(site.calls)}; " if site and site.calls else "") + cost(evidence, taken),
        advice="log once per interval, not in every step\nif step % 100 == 0: log(...)",
        phase="logging",
        site=site,
        saves_ms=taken,
    )


RULES = (
    Rule(
        "sync_in_loop",
        "the loop reads values from the device",
        ".item(), .tolist(), .cpu(), bool(), print, mask indexing: lines, calls, time",
        f"{percent(SYNC)} of a step",
        "read values once per log interval, decide on the device",
        sync_in_loop,
    ),
    Rule(
        "blocking_copies",
        "copies to the device are waited for",
        "copies without non_blocking, their time",
        f"{percent(COPY)} of a step",
        "pin_memory=True and non_blocking=True",
        blocking_copies,
    ),
    Rule(
        "unpinned_memory",
        "non_blocking copies from memory that is not pinned, which block after all",
        "copies from memory that is not pinned, their time",
        f"{percent(COPY)} of a step",
        "pin_memory=True",
        unpinned_memory,
    ),
    Rule(
        "oversubscribed_threads",
        "more threads compute than there are free cores",
        "threads of torch, cores, load of other processes",
        f"2 threads or more, {CROWDED:g} per core, computing {percent(COMPUTING)} of a step",
        "OMP_NUM_THREADS",
        oversubscribed_threads,
    ),
    Rule(
        "eager_optimizer",
        "the optimizer loops over parameters in Python (foreach and fused off)",
        "its flags, tensors, time",
        f"{percent(OPTIMIZER)} of a step, {LEAST_TENSORS} tensors",
        "fused=True",
        eager_optimizer,
    ),
    Rule(
        "logging_in_loop",
        "something is logged in every step",
        "time in loggers",
        f"{percent(LOGGING)} of a step",
        "log once per interval",
        logging_in_loop,
    ),
)
