"""What the measurements of tokenizing mean: shares of a step, hours saved, a verdict and what to change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import floor, log10
from typing import Any

import msgspec

from headrace.diagnosis.report import Fix
from headrace.diagnosis.tokenization_corpus import Cost
from headrace.diagnosis.tokenization_estimate import Estimate, Saving, rate_with, saving, share_of_step
from headrace.diagnosis.tokenization_timing import BATCHED, MEMORY_MAP, ONE, PREPARED

RATES = (10_000.0, 100_000.0, 1_000_000.0)  # tokens/s to compare with when nobody says how fast training is
SMALL = 0.01  # of a step: below, tokenizing is nobody's problem
WORTH = 1.1  # times faster, for a change that is no more than that


class Findings(msgspec.Struct, kw_only=True):
    source: str
    tokenizer: str
    options: dict[str, str] = {}  # how the source is read
    reference: str
    exact: list[str]  # engines that give the ids of the reference, itself among them
    costs: list[Cost]
    rate: float | None  # of training, tokens/s
    epochs: float
    workers: int

    def cost(self, engine: str, way: str) -> Cost:
        return next(cost for cost in self.costs if (cost.engine, cost.way) == (engine, way))

    @property
    def fastest(self) -> str:
        """The exact engine that is fastest on the corpus's documents."""
        batched = [cost for cost in self.costs if cost.way == BATCHED and cost.engine in self.exact]
        return max(batched, key=lambda cost: cost.tokens_per_s_core).engine

    @property
    def prepared(self) -> Cost:
        return self.cost(MEMORY_MAP, PREPARED)

    def shares(self) -> list[dict[str, Any]]:
        return [
            {
                "tokens_per_second": rate,
                "engine": cost.engine,
                "way": cost.way,
                "share": share_of_step(rate, cost.tokens_per_s_core),
                "tokens_per_second_left": rate_with(rate, cost.tokens_per_s_core),
            }
            for rate in ((self.rate,) if self.rate else RATES)
            for cost in self.costs
        ]

    def savings(self) -> list[Saving]:
        """Against every way of tokenizing in the loop."""
        return [self.saving_over(cost) for cost in self.costs if cost.way != PREPARED]

    def saving_over(self, cost: Cost) -> Saving:
        return saving(
            cost.engine,
            cost.way,
            in_loop=cost.seconds,
            once=self.cost(self.fastest, BATCHED).seconds,
            reading=self.prepared.seconds,
            epochs=self.epochs,
            workers=self.workers,
        )

    def speedup(self, before: Cost, after: Cost) -> float:
        """Of a step at the training rate; 1 where that is not known."""
        if self.rate is None:
            return 1.0
        return (1 / self.rate + 1 / before.tokens_per_s_core) / (1 / self.rate + 1 / after.tokens_per_s_core)


def verdict(findings: Findings) -> str:
    loop = findings.cost(findings.reference, ONE)
    hours = findings.saving_over(loop)
    took = f"{findings.epochs:g} epochs" if findings.epochs != 1 else "an epoch"
    by = f"one by one with {findings.reference}"
    if findings.rate is None:
        return (
            f"Tokenizing {findings.source} {by} takes {said(hours.in_loop)} of one core for {took}, reading it "
            f"prepared {duration(hours.reading.value)}."
        )
    rate = f"At {findings.rate:,.0f} tokens/s"
    share = share_of_step(findings.rate, loop.tokens_per_s_core)
    if share < SMALL:
        return f"{rate} tokenizing is not what is slow: {by} it is {percent(share)} of a step."
    left = share_of_step(findings.rate, findings.prepared.tokens_per_s_core)
    return (
        f"{rate}, tokenizing {by} is {percent(share)} of a step, and reading it prepared {percent(left)}: "
        f"{said(hours.in_loop)} against {duration(hours.reading.value)} for {took}."
    )


def fixes(findings: Findings) -> list[Fix]:
    loop = findings.cost(findings.reference, ONE)
    if findings.rate is not None and share_of_step(findings.rate, loop.tokens_per_s_core) < SMALL:
        return []
    return [_prepare(findings, loop), *_batch(findings, loop), *_engine(findings, loop)]


def _prepare(findings: Findings, loop: Cost) -> Fix:
    saved = findings.saving_over(loop)
    command = prepare_command(findings.source, findings.tokenizer, findings.options)
    return Fix(
        rule="tokenizing_per_sample",
        title="Text is tokenized in the loop, one sample at a time",
        evidence=f"one by one {said(saved.in_loop)}; prepared {duration(saved.prepare.value)} of tokenizing once on "
        f"{plural(findings.workers, 'core')} and {duration(saved.reading.value)} of reading: saves {said(saved.saved)}",
        advice=f"tokenize once, before training, and read the tokens in the loop\n{command}",
        phase="tokenization",
        speedup=findings.speedup(loop, findings.prepared),
    )


def _batch(findings: Findings, loop: Cost) -> Iterator[Fix]:
    batched = findings.cost(findings.reference, BATCHED)
    times = batched.tokens_per_s_core / loop.tokens_per_s_core
    if times >= WORTH:
        yield Fix(
            rule="tokenizing_per_sample",
            title="If it has to stay in the loop: one call for a batch",
            evidence=f"{findings.reference} {BATCHED} is {times:.1f}x as fast as one by one, per core",
            advice="tokenizer(texts) in the place of [tokenizer(text) for text in texts]",
            phase="tokenization",
            speedup=findings.speedup(loop, batched),
        )


def _engine(findings: Findings, loop: Cost) -> Iterator[Fix]:
    fast = findings.cost(findings.fastest, BATCHED)
    times = fast.tokens_per_s_core / loop.tokens_per_s_core
    if findings.fastest != findings.reference and times >= WORTH:
        yield Fix(
            rule="tokenizing_in_loop",
            title="If it has to stay in the loop: a faster engine with the same ids",
            evidence=f"{findings.fastest} {BATCHED} is {times:.0f}x as fast as {findings.reference} one by one, and "
            "exact on the sample",
            advice="live text is tokenized by it, in threads beside the training\n"
            f"headrace train --text {shlex.quote(findings.source)}{_tokenizer(findings.tokenizer)}",
            phase="tokenization",
            speedup=findings.speedup(loop, fast),
        )


def prepare_command(source: str, tokenizer: str, options: dict[str, str]) -> str:
    """What to type; `options` are those that say how the source is read."""
    read = "".join(f" --{name.replace('_', '-')} {shlex.quote(value)}" for name, value in options.items())
    return f"headrace prepare {shlex.quote(source)}{_tokenizer(tokenizer)}{read}"


def _tokenizer(name: str) -> str:
    return "" if name == "headrace-32k" else f" --tokenizer {shlex.quote(name)}"


UNITS = (("h", 1.0), ("min", 1 / 60), ("s", 1 / 3600), ("ms", 1 / 3.6e6))  # in hours


def said(hours: Estimate) -> str:
    """3.24 ± 0.12 h, in the unit that suits, with two figures of the error."""
    unit, size = _unit(hours.value)
    if hours.error is None:
        return f"about {duration(hours.value)}"
    error = hours.error / size
    digits = max(0, 1 - floor(log10(error))) if error > 0 else 1
    return f"{hours.value / size:,.{digits}f} ± {error:,.{digits}f} {unit}"


def duration(hours: float) -> str:
    """In the unit that suits, with two figures."""
    unit, size = _unit(hours)
    value = hours / size
    return f"{value:,.0f} {unit}" if abs(value) >= 9.95 else f"{value:.1f} {unit}"


def _unit(hours: float) -> tuple[str, float]:
    return next((unit for unit in UNITS if abs(hours) >= unit[1]), UNITS[-1])


def percent(share: float) -> str:
    """30%, 4.2%, <0.1%."""
    if share >= 0.0995:
        return f"{share:.0%}"
    return f"{100 * share:.1f}%" if share >= 0.001 else "<0.1%"


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
