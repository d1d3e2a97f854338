"""What tokenizing this corpus costs: every engine, every way, and what preparing it once would save."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from headrace.diagnosis.report import Report
from headrace.diagnosis.tokenization_corpus import CorpusTimer, Cost, for_corpus
from headrace.diagnosis.tokenization_findings import Findings, fixes, verdict
from headrace.diagnosis.tokenization_lengths import LengthTimer
from headrace.diagnosis.tokenization_sample import Sample, take_sample
from headrace.diagnosis.tokenization_timing import BATCHED, PREPARED, loadable
from headrace.errors import UsageError
from headrace.pipeline.config import usable_cores
from headrace.sources import open_source
from headrace.telemetry import read_events
from headrace.tokenizers import check_parity, load_tokenizer
from headrace.tokenizers.fast import one_thread_each

BYTES_PER_SECOND = 4 << 10  # of a part, for each second to measure in: the reference reads 2-5 MB/s a core
LEAST_PART, LARGEST_PART = 8 << 10, 512 << 10
DOCUMENTS_SHARE = 0.3  # of the seconds, for the corpus's own documents
LENGTHS_SHARE = 0.45  # at least, for texts of given lengths, so that a busy machine gets its rounds too
BUSY = 1.3  # by the clock for each second of processor

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class TokenizationConfig:
    source: str = "python-stdlib"
    tokenizer: str = "headrace-32k"
    seconds: float = 10.0
    tokens_per_second: float | None = None  # of training, with the data there
    run: Path | None = None  # of headrace, to take that from
    workers: int | None = None
    epochs: float = 1.0
    seed: int = 0
    text_field: str | None = None
    split: str | None = None
    revision: str | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        for flag, value in (("seconds", self.seconds), ("epochs", self.epochs), ("workers", self.workers),
                            ("tokens-per-second", self.tokens_per_second)):  # fmt: skip
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"--{flag} {value:g} cannot be: it must be above 0.")
        if self.run is not None and self.tokens_per_second is not None:
            raise UsageError("--run and --tokens-per-second both say how fast training is. Leave one of them out.")

    @property
    def worker_count(self) -> int:
        return self.workers or len(usable_cores())

    @property
    def reading(self) -> dict[str, Any]:
        """What was said about how the source is read."""
        named = ((name, getattr(self, name)) for name in ("text_field", "split", "revision", "separator"))
        return {name: value for name, value in named if value is not None}

    @property
    def part_bytes(self) -> int:
        return int(min(LARGEST_PART, max(LEAST_PART, self.seconds * BYTES_PER_SECOND)))


def diagnose_tokenization(config: TokenizationConfig, progress: Progress = lambda text: None) -> Report:
    started = time.perf_counter()
    one_thread_each()
    rate = config.tokens_per_second if config.run is None else rate_of_run(config.run)
    tokenizer = load_tokenizer(config.tokenizer)
    progress("taking a sample")
    sample = take_sample(open_source(config.source, **config.reading), config.part_bytes, config.seed)
    loads, refused = loadable(tokenizer)
    with TemporaryDirectory(prefix="headrace-") as folder:
        corpus = CorpusTimer(tokenizer, list(loads), sample, Path(folder))
        corpus.run(DOCUMENTS_SHARE * config.seconds, progress)
        progress("comparing ids with the reference")
        parity = check_parity(tokenizer, sample.texts)
        costs = corpus.costs()
        lengths = LengthTimer(tokenizer, sample, costs, Path(folder), config.worker_count, config.seconds, config.seed)
        left = config.seconds - (time.perf_counter() - started)
        timings = lengths.run(max(left, LENGTHS_SHARE * config.seconds), progress)
    findings = Findings(
        source=config.source,
        tokenizer=config.tokenizer,
        options=config.reading,
        reference=parity.reference,
        exact=[parity.reference, *(engine.engine for engine in parity.engines if engine.exact)],
        costs=costs,
        rate=rate,
        epochs=config.epochs,
        workers=config.worker_count,
    )
    facts = {
        "source": config.source,
        "tokenizer": tokenizer.name,
        "reference": parity.reference,
        "fastest": findings.fastest,
        "epochs": config.epochs,
        "workers": config.worker_count,
        "sample": _sample_facts(sample, config.seed, corpus),
        "corpus": _corpus_facts(sample, corpus),
        "engines": list(_engine_facts(loads, refused, parity, costs)),
        "timings": msgspec.to_builtins(timings),
        "documents": msgspec.to_builtins(costs),
        "shares": findings.shares(),
        "savings": msgspec.to_builtins(findings.savings()),
        "notes": [*sample.notes, *_busy(costs)],
        "seconds": round(time.perf_counter() - started, 2),
    }
    return Report(
        kind="tokenization",
        subject=config.source,
        verdict=verdict(findings),
        tokens_per_second=rate,
        fixes=fixes(findings),
        missing=lengths.left_out,
        facts=facts,
    )


def rate_of_run(folder: Path) -> float:
    """Tokens/s of a headrace run while it computed: evaluation, checkpoints and waiting for data left out."""
    steps = [event for event in read_events(folder / "events.jsonl") if event.get("kind") == "step"]
    seconds = tokens = 0.0
    for event in steps[1:] or steps:  # the first interval holds the warm-up
        spans = event["spans"]
        training = event["seconds"] - spans["evaluation"] - spans["checkpoint"]
        tokens += event["tokens_per_second"] * training
        seconds += training - spans["data_wait"]
    if seconds <= 0 or tokens <= 0:
        raise UsageError(
            f"--run {folder}: its events have no finished steps. Name the folder of a run of headrace train, such as "
            "runs/NAME, or say how fast training is: --tokens-per-second N"
        )
    return tokens / seconds


def _busy(costs: Sequence[Cost]) -> Iterator[str]:
    usual = median(cost.clock_over_cpu for cost in costs if cost.way != PREPARED)
    if usual > BUSY:
        yield (
            f"The machine was busy: {usual:.1f} s by the clock for a second of processor. Milliseconds are by the "
            "clock; rates per core and hours are by the processor."
        )


def _sample_facts(sample: Sample, seed: int, corpus: CorpusTimer) -> dict[str, Any]:
    return {
        "places": sample.places,
        "parts": len(sample.parts),
        "parts_measured": len(corpus.parts),
        "documents": len(sample.texts),
        "bytes": sum(map(len, sample.texts)),
        "seed": seed,
    }


def _corpus_facts(sample: Sample, corpus: CorpusTimer) -> dict[str, Any]:
    text = for_corpus(sample, corpus.parts, [float(part.sample_bytes) for part in corpus.parts])
    tokens = corpus.whole([float(count) for count in corpus.tokens])
    return {
        "input_bytes": sample.corpus_input_bytes,
        "counted": sample.corpus_text_bytes is not None,
        "documents": sample.corpus_documents,
        "text_bytes": msgspec.to_builtins(text),
        "tokens": msgspec.to_builtins(tokens),
    }


def _engine_facts(
    loads: dict[str, float], refused: dict[str, str], parity: Any, costs: Sequence[Cost]
) -> Iterator[dict[str, Any]]:
    reports = {report.engine: report for report in parity.engines}
    for name, seconds in loads.items():
        report = reports.get(name)
        cost = next(cost for cost in costs if (cost.engine, cost.way) == (name, BATCHED))
        yield {
            "engine": name,
            "reference": name == parity.reference,
            "exact": report is None or report.exact,
            "compared": parity.documents,
            "mismatch": report.mismatch.describe() if report is not None and report.mismatch else None,
            "load_seconds": round(seconds, 4),
            "mb_per_s_core": cost.mb_per_s_core,
            "tokens_per_s_core": cost.tokens_per_s_core,
        }
    for name, reason in refused.items():
        yield {"engine": name, "reference": False, "exact": None, "unsupported": reason}
