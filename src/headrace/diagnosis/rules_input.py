"""Rules about the way from text to a batch: tokenizing, files, workers, padding."""

from __future__ import annotations

import math

from headrace.diagnosis.evidence import Evidence, Loading, Tokenizing
from headrace.diagnosis.report import Fix, Site
from headrace.diagnosis.rules_base import (
    Rule,
    cost,
    dearest,
    first_site,
    matters,
    milliseconds,
    number,
    percent,
    phase_of,
    plural,
)

TOKENIZING = 0.05  # of a step
TEXTS_PER_CALL = 2.0  # fewer is one by one
SMALL_FILE = 256 * 1024  # bytes; a disk reads this much in the time that it takes to open a file
FILES_PER_STEP = 4.0
WAITING = 0.10  # of a step, for data
MAKER = 0.30  # of the wait for data: a function that takes as much is where it comes from
WORKERS_PER_CORE = 2.0
PADDING = 0.20  # of the tokens; sorted batches of documents have less


def tokenizing_per_sample(evidence: Evidence) -> Fix | None:
    calls = [entry for entry in evidence.tokenizing if _one_by_one(entry)]
    return _tokenizing(evidence, calls, "tokenizing_per_sample", "Text is tokenized one sample at a time in the loop")


def tokenizing_in_loop(evidence: Evidence) -> Fix | None:
    calls = [entry for entry in evidence.tokenizing if not _one_by_one(entry)]
    return _tokenizing(evidence, calls, "tokenizing_in_loop", "Text is tokenized in the training loop")


def _one_by_one(entry: Tokenizing) -> bool:
    """One call a step cannot be made fewer."""
    return entry.texts_per_call < TEXTS_PER_CALL and entry.site.calls >= 2


def _tokenizing(evidence: Evidence, calls: list[Tokenizing], rule: str, title: str) -> Fix | None:
    here = sum(entry.site.ms for entry in calls if not entry.in_worker)
    saves = min(here, milliseconds(evidence, "tokenization")) + _waited_for(evidence, calls)
    if not calls or not matters(evidence, saves, TOKENIZING):
        return None
    most = max(calls, key=lambda entry: entry.site.ms)
    where = "in the workers" if most.in_worker else "in the loop"
    texts = plural(most.texts_per_call, "text")
    return Fix(
        rule=rule,
        title=title,
        evidence=f"{plural(most.site.calls, 'call')} of {most.library} a step {where}, {texts} each, "
        f"{number(most.ms_per_text)} ms a text; {cost(evidence, saves)}",
        advice=_tokenizing_advice(rule),
        phase="data_wait" if most.in_worker else "tokenization",
        site=most.site,
        saves_ms=saves,
    )


def _waited_for(evidence: Evidence, calls: list[Tokenizing]) -> float:
    """What workers take for tokenizing costs the step as much as it waits for it, and no more."""
    inside = sum(entry.site.ms for entry in calls if entry.in_worker)
    workers = max((entry.workers for entry in evidence.loading), default=1)
    at_once = max(1, min(workers, evidence.cores))
    return min(milliseconds(evidence, "data_wait"), inside / at_once)


def _tokenizing_advice(rule: str) -> str:
    first = "tokenize once, before training, and read the tokens in the loop\n"
    command = "headrace prepare TEXT --out DIR, then: for batch in headrace.Loader('DIR', ...)"
    batched = "\nor, if it has to stay here, one call for the whole batch: tokenizer(texts)"
    return first + command + (batched if rule == "tokenizing_per_sample" else "")


def small_files(evidence: Evidence) -> Fix | None:
    files, size = evidence.files_per_step or 0.0, evidence.bytes_per_file
    if files < FILES_PER_STEP or size is None or size >= SMALL_FILE:
        return None
    waited, taken = milliseconds(evidence, "data_wait"), evidence.file_site.ms if evidence.file_site else 0.0
    saves = min(taken, waited) if taken and waited else waited
    if not matters(evidence, saves):
        return None
    return Fix(
        rule="small_files",
        title="Every sample is a small file of its own",
        evidence=f"{number(files)} files opened a step, {number(size / 1024)} KiB each; {cost(evidence, saves)}",
        advice="put the samples into a few large files once, and map them\n"
        "headrace prepare 'FOLDER/**/*.txt' --out DIR, then headrace.Loader('DIR', ...)",
        phase="data_wait",
        site=evidence.file_site,
        saves_ms=saves,
    )


def too_many_workers(evidence: Evidence) -> Fix | None:
    for loading in evidence.loading:
        if loading.workers > WORKERS_PER_CORE * loading.cores:
            waited = milliseconds(evidence, "data_wait")
            return Fix(
                rule="too_many_workers",
                title="More DataLoader workers than cores to run them",
                evidence=f"{loading.workers} workers on {plural(loading.cores, 'core')}",
                advice=f"start no more workers than there are cores\nDataLoader(..., num_workers={loading.cores})",
                phase="data_wait" if waited else None,
                site=loading.site,
                saves_ms=waited * (1 - loading.cores / loading.workers),
            )
    return None


def too_few_workers(evidence: Evidence) -> Fix | None:
    waited = milliseconds(evidence, "data_wait")
    loading = max(evidence.loading, key=lambda entry: entry.site.ms, default=None)
    if loading is None or not matters(evidence, waited, WAITING) or loading.workers >= loading.cores:
        return None
    wanted = _wanted_workers(evidence, loading, waited)
    saves = evidence.step_ms - _step_with(evidence, loading, waited, wanted)
    if wanted <= loading.workers or not matters(evidence, saves):
        return None
    return Fix(
        rule="too_few_workers",
        title="The DataLoader has too few workers to keep up",
        evidence=f"{plural(loading.workers, 'worker')}, {plural(loading.cores, 'core')}; waits for data "
        f"{cost(evidence, waited)}{_inside(evidence)}",
        advice=f"let workers load while the model computes\n"
        f"DataLoader(..., num_workers={wanted}, persistent_workers=True)",
        phase="data_wait",
        site=loading.site,
        saves_ms=saves,
    )


def _wanted_workers(evidence: Evidence, loading: Loading, waited: float) -> int:
    """As many as loading takes longer than the rest of the step, within the cores."""
    rest = max(evidence.step_ms - waited, 1e-9)
    work = evidence.step_ms * loading.workers if loading.workers else waited
    return max(1, min(loading.cores, math.ceil(work / rest)))


def _step_with(evidence: Evidence, loading: Loading, waited: float, workers: int) -> float:
    """Workers that are waited for load all the time, so their work is the step times their number."""
    work = evidence.step_ms * loading.workers if loading.workers else waited
    return max(evidence.step_ms - waited, work / workers)


def _inside(evidence: Evidence) -> str:
    """; most of it at data.py:41 in __getitem__"""
    line, _ = maker_of_batches(evidence)
    return f"; most of it at {line.place} in {line.function}" if line else ""


def maker_of_batches(evidence: Evidence) -> tuple[Site | None, float]:
    """The dearest line of the dearest function that samples found at work on a batch, and what that function takes."""
    by_function: dict[tuple[str, str], list[Site]] = {}
    for site in phase_of(evidence, "data_wait").sites:
        if not site.what:  # by hooks: the line that waits, not the one that works
            by_function.setdefault((site.file, site.function), []).append(site)
    lines = max(by_function.values(), key=lambda sites: sum(site.ms for site in sites), default=[])
    taken = sum(site.ms for site in lines)
    if taken < MAKER * milliseconds(evidence, "data_wait"):
        return None, 0.0
    return dearest(lines), taken


def waiting_for_data(evidence: Evidence) -> Fix | None:
    """The last of the rules about input: nothing above says why."""
    waited = milliseconds(evidence, "data_wait")
    if not matters(evidence, waited, WAITING):
        return None
    line, taken = maker_of_batches(evidence)
    within = f"; {line.function} takes {number(taken)} ms, {number(line.ms)} of them at this line" if line else ""
    return Fix(
        rule="waiting_for_data",
        title="The step waits for its data",
        evidence=cost(evidence, waited) + within,
        advice="make batches ahead, beside the computation\n"
        "headrace prepare TEXT --out DIR once, then headrace.Loader('DIR', ...) gives mapped tokens without waiting",
        phase="data_wait",
        site=line or first_site(evidence, "data_wait") or dearest(entry.site for entry in evidence.loading),
        saves_ms=waited,
    )


def padding(evidence: Evidence) -> Fix | None:
    share = evidence.pad_share or 0.0
    saves = share * milliseconds(evidence, "forward", "backward")
    if share < PADDING or not matters(evidence, saves):
        return None
    return Fix(
        rule="padding",
        title="The model computes on padding",
        evidence=f"{percent(share)} of the tokens are padding; {cost(evidence, saves)}",
        advice="pack documents into full rows instead of padding them\n"
        "headrace prepare TEXT --out DIR --chunk-size N packs them; or sort by length before batching",
        phase="forward",
        site=evidence.pad_site,
        saves_ms=saves,
    )


RULES = (  # the cause before the symptom
    Rule(
        "tokenizing_per_sample",
        "text is tokenized one sample at a time, in the loop or in its workers",
        "calls of a tokenizer, texts per call, time that the step spends or waits for them",
        f"{percent(TOKENIZING)} of a step, under {TEXTS_PER_CALL:g} texts a call",
        "tokenize once before training; else one call per batch",
        tokenizing_per_sample,
    ),
    Rule(
        "tokenizing_in_loop",
        "text is tokenized in batches, but in every step",
        "time that the step spends in a tokenizer or waits for it",
        f"{percent(TOKENIZING)} of a step",
        "tokenize once before training",
        tokenizing_in_loop,
    ),
    Rule(
        "small_files",
        "every sample is a file",
        "files opened in a step, their size, the wait for data",
        f"{FILES_PER_STEP:g} files a step under {SMALL_FILE // 1024} KiB, and 5% of a step",
        "a few large mapped files",
        small_files,
    ),
    Rule(
        "too_many_workers",
        "workers fight over the cores",
        "workers of the DataLoader, cores",
        f"more than {WORKERS_PER_CORE:g} workers a core",
        "no more workers than cores",
        too_many_workers,
    ),
    Rule(
        "too_few_workers",
        "loading takes longer than computing, and cores are free",
        "workers, cores, the wait for data",
        f"{percent(WAITING)} of a step, fewer workers than cores",
        "as many workers as loading takes steps",
        too_few_workers,
    ),
    Rule(
        "waiting_for_data",
        "batches are made too slowly, for no reason named above",
        "the wait for data",
        f"{percent(WAITING)} of a step",
        "prepare the data; make batches ahead",
        waiting_for_data,
        rest=True,
    ),
    Rule(
        "padding",
        "the model computes on padding",
        "share of padding among the tokens that the model saw",
        f"{percent(PADDING)} of the tokens, and 5% of a step",
        "pack documents",
        padding,
    ),
)
