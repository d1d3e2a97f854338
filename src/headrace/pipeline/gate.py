"""The parity gate of a run, held beside its first tasks: what they make counts only once the gate is passed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from headrace.pipeline.config import PrepareConfig
from headrace.pipeline.plan import Plan
from headrace.pipeline.progress import Observer
from headrace.pipeline.sampling import take_sample
from headrace.telemetry import EventLog
from headrace.tokenizers import FAST_ENGINES, Tokenizer, choose_engine
from headrace.tokenizers.parity import SAMPLE_BYTES, TIMING_BYTES, ParityReport

COMPARE_ENGINES_FROM = 2 << 30  # input bytes; below, loading a second engine (0.1-1.9 s) costs more than it can win


class Choice(NamedTuple):
    engine: str
    exact: frozenset[str]  # the fast engines whose ids are the reference's
    wrong: frozenset[str] = frozenset()  # those whose ids are not; the rest could not be loaded


class Gate:
    """Decides in a thread: loading engines and encoding the sample takes 0.3-1.0 s, which tasks need not wait for."""

    def __init__(self, decide: Callable[[], Choice]) -> None:
        self._executor = ThreadPoolExecutor(1, "headrace-gate")
        self._future = self._executor.submit(decide)
        self._executor.shutdown(wait=False)

    def choice(self) -> Choice:
        """Waits for the decision."""
        return self._future.result()

    def passes(self, engine: str) -> bool:
        """Whether what this engine makes may be kept; waits for the decision."""
        return engine not in FAST_ENGINES or engine in self.choice().exact

    def has_refused(self, engine: str) -> bool:
        """Whether it is known by now that it may not."""
        return self._future.done() and not self.passes(engine)


def likely_engine(config: PrepareConfig, plan: Plan, banned: set[str]) -> str | None:
    """The engine that tasks may begin with before the gate has decided; None where they have to wait for it."""
    if config.engine != "auto" or plan.total_bytes >= COMPARE_ENGINES_FROM or FAST_ENGINES[0] in banned:
        return None
    return FAST_ENGINES[0]


def decide(
    config: PrepareConfig, plan: Plan, tokenizer: Tokenizer, banned: set[str], observer: Observer, events: EventLog
) -> Choice:
    """The fastest engine that gives the reference's ids on this input, or the one asked for if it does."""
    if config.engine == "reference":
        return Choice("reference", frozenset())
    texts = take_sample(plan, SAMPLE_BYTES)
    large = plan.total_bytes >= COMPARE_ENGINES_FROM
    timing_texts = take_sample(plan, TIMING_BYTES) if large else []
    report = choose_engine(tokenizer, texts, timing_texts, all_engines=large or config.engine != "auto")
    events.write("parity", report=msgspec.to_builtins(report))
    _tell(report, banned, observer)
    exact = frozenset(engine.engine for engine in report.engines if engine.exact) - banned
    wrong = frozenset(engine.engine for engine in report.engines if engine.mismatch is not None)
    choice = Choice(_pick(config.engine, report, exact), exact, wrong)
    observer.notice(_sentence(choice.engine, report))
    return choice


def _pick(asked: str, report: ParityReport, exact: frozenset[str]) -> str:
    if asked != "auto":
        return asked if asked in exact else "reference"
    if report.fastest in exact:
        return report.fastest
    return next((name for name in FAST_ENGINES if name in exact), "reference")


def _tell(report: ParityReport, banned: set[str], observer: Observer) -> None:
    for engine in report.engines:
        if engine.mismatch is not None:
            observer.notice(f"{engine.engine} is left out: it differs on {engine.mismatch.describe()}")
        elif engine.unsupported is not None:
            observer.notice(f"{engine.engine} is left out: {engine.unsupported}")
        elif engine.engine in banned:
            observer.notice(f"{engine.engine} is left out: it was wrong earlier in this run")


def _sentence(engine: str, report: ParityReport) -> str:
    if engine == "reference":
        return f"Tokenizing with the reference engine, {report.reference}."
    return f"Tokenizing with {engine}: exact on {report.documents} test documents."
