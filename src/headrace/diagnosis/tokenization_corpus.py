"""What each way costs on the corpus's own documents, part by part, so that the whole can be extrapolated."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median

import msgspec

from headrace.diagnosis.tokenization_estimate import Estimate, extrapolate
from headrace.diagnosis.tokenization_sample import Part, Sample
from headrace.diagnosis.tokenization_timing import (
    BATCHED,
    BATCHES,
    MEMORY_MAP,
    ONE,
    PREPARED,
    Encode,
    MappedTokens,
    Measured,
    load_engine,
    one_by_one,
)
from headrace.storage import dtype_for
from headrace.tokenizers import Tokenizer

MOST_PASSES = 5
ROW = 2048  # tokens, what `headrace prepare` has as its chunk
WARM_EVERY = 4  # one part in so many is for warming up


class Cost(msgspec.Struct, kw_only=True):
    """One engine, one way, on documents as they come."""

    engine: str
    way: str
    mb_per_s_core: float
    tokens_per_s_core: float
    clock_over_cpu: float  # above 1 the machine was busy with something else, or the way waited
    seconds: Estimate  # of one core, for one epoch of the corpus
    passes: int


def measured_parts(sample: Sample) -> tuple[list[Part], list[Part]]:
    """Those for warming up, and those that are measured; a sample of one part does both."""
    warm = sample.parts[::WARM_EVERY]
    measured = [part for number, part in enumerate(sample.parts) if number % WARM_EVERY]
    return (warm, measured) if measured else (warm, warm)


class CorpusTimer:
    """Passes over the measured parts, each with a fresh engine that has seen the other parts.

    An engine keeps words that it has met. One that has met these very parts would be faster than it is on a corpus,
    and one that has met nothing slower.
    """

    def __init__(self, tokenizer: Tokenizer, engines: Sequence[str], sample: Sample, folder: Path) -> None:
        self._tokenizer, self._engines, self._sample = tokenizer, engines, sample
        warm, self.parts = measured_parts(sample)
        self._warm = [text for part in warm for text in part.texts]
        rows = tokenizer.reference().encode([text for part in self.parts for text in part.texts])
        tokens = [len(row) for row in rows]
        self._mapped = MappedTokens(folder / "documents.bin", dtype_for(tokenizer.vocab_size), rows)
        ends = [0]
        for part in self.parts:
            ends.append(ends[-1] + len(part.texts))
        self.tokens = [sum(tokens[start:stop]) for start, stop in pairwise(ends)]
        self._passes: dict[tuple[str, str], list[list[Measured]]] = {}

    def run(self, seconds: float, on_pass: Callable[[str], None]) -> None:
        """One pass at least, more while they fit."""
        started = time.perf_counter()
        for number in range(MOST_PASSES):
            began = time.perf_counter()
            for engine in self._engines:
                on_pass(f"{engine} on documents, pass {number + 1}")
                for way in (ONE, BATCHED):
                    self._pass(engine, way)
            self._read()
            now = time.perf_counter()
            if now - started + (now - began) > seconds:
                return

    def _pass(self, engine: str, way: str) -> None:
        loaded = load_engine(self._tokenizer, engine)
        loaded.encode(self._warm)
        encode = one_by_one(loaded) if way == ONE else loaded.encode
        size = 1 if way == ONE else BATCHES[-1]
        self._passes.setdefault((engine, way), []).append([_time(part.texts, size, encode) for part in self.parts])

    def _read(self) -> None:
        self._mapped.open()
        ends = list(accumulate(self.tokens, initial=0))
        found = [_time_reading(self._mapped, start, stop) for start, stop in pairwise(ends)]
        self._passes.setdefault((MEMORY_MAP, PREPARED), []).append(found)

    def costs(self) -> list[Cost]:
        return [self._cost(engine, way, passes) for (engine, way), passes in self._passes.items()]

    def _cost(self, engine: str, way: str, passes: list[list[Measured]]) -> Cost:
        by_part = list(zip(*passes, strict=True))
        cpu = [median(one.cpu for one in part) for part in by_part]
        clock = [median(one.seconds for one in part) for part in by_part]
        total = max(sum(cpu), 1e-9)
        return Cost(
            engine=engine,
            way=way,
            mb_per_s_core=sum(part.sample_bytes for part in self.parts) / 1e6 / total,
            tokens_per_s_core=sum(self.tokens) / total,
            clock_over_cpu=sum(clock) / total,
            seconds=self.whole(cpu),
            passes=len(passes),
        )

    def whole(self, amounts: Sequence[float]) -> Estimate:
        return for_corpus(self._sample, self.parts, amounts)


def _time(texts: Sequence[bytes], size: int, encode: Encode) -> Measured:
    clock, cpu = time.perf_counter(), time.process_time()
    tokens = 0
    for start in range(0, len(texts), size):
        tokens += sum(map(len, encode(texts[start : start + size])))
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    return Measured(seconds, used, len(texts), sum(map(len, texts)), tokens)


def _time_reading(mapped: MappedTokens, begin: int, end: int) -> Measured:
    """Rows of tokens, as a loader takes them, whatever documents they hold."""
    clock, cpu = time.perf_counter(), time.process_time()
    rows = [mapped.read(start, min(start + ROW, end)) for start in range(begin, end, ROW)]
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    return Measured(seconds, used, len(rows), 0, end - begin)


def for_corpus(sample: Sample, parts: Sequence[Part], amounts: Sequence[float]) -> Estimate:
    """What was found in the parts, for all of the corpus: by its bytes of text if they were counted, else by its files.

    By files, a part stands for what was read there, compressed or not, so that the ratio of text to file is part of
    what is extrapolated, and its spread part of the error.
    """
    if sample.corpus_text_bytes is not None:
        return extrapolate([part.sample_bytes for part in parts], amounts, sample.corpus_text_bytes)
    scaled = [amount * part.text_bytes / max(1, part.sample_bytes) for part, amount in zip(parts, amounts, strict=True)]
    return extrapolate([part.input_bytes for part in parts], scaled, sample.corpus_input_bytes)
