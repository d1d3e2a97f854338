"""Nothing fast is trusted: engines are compared with the reference id by id, on the user's own documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from headrace.tokenizers.base import FAST_ENGINES, Engine, Ids, Tokenizer, Unsupported
from headrace.tokenizers.nasty import nasty_texts
from headrace.tokenizers.tiktoken_ranks import ReferenceFailed

SAMPLE_BYTES = 256 << 10  # the reference needs ~0.1 s for this; more would be felt on a small job
TIMING_BYTES = 4 << 20  # on less, the engines' caches are cold and the wrong one may win


class Mismatch(msgspec.Struct, frozen=True):
    """The smallest text found on which an engine and the reference differ."""

    text: str
    engine_ids: list[int]
    reference_ids: list[int]

    def describe(self) -> str:
        return f"{self.text!r}: engine {self.engine_ids}, reference {self.reference_ids}"


class EngineReport(msgspec.Struct, frozen=True):
    engine: str
    exact: bool
    documents: int
    mb_per_s: float
    mismatch: Mismatch | None = None
    unsupported: str | None = None  # why it could not be loaded


class ParityReport(msgspec.Struct, frozen=True):
    tokenizer: str
    reference: str
    documents: int
    sample_bytes: int
    engines: list[EngineReport]

    @property
    def fastest(self) -> str:
        """The fastest exact engine; the reference where there is none."""
        exact = [report for report in self.engines if report.exact]
        return max(exact, key=lambda report: report.mb_per_s).engine if exact else self.reference


def check_parity(
    tokenizer: Tokenizer,
    texts: Sequence[bytes] = (),
    *,
    timing_texts: Sequence[bytes] = (),
    engines: Sequence[str] = FAST_ENGINES,
) -> ParityReport:
    """Compare each engine with the reference on these texts and on the nasty strings; time it on `timing_texts`."""
    reference = tokenizer.reference()
    sample = [*texts, *nasty_texts(tokenizer.control_texts())]
    expected, checked = _reference_rows(reference, sample)
    reports = [_check_engine(tokenizer, engine, sample, expected, timing_texts or texts) for engine in engines]
    return ParityReport(tokenizer.name, reference.name, checked, sum(map(len, sample)), reports)


def choose_engine(
    tokenizer: Tokenizer, texts: Sequence[bytes], timing_texts: Sequence[bytes] = (), *, all_engines: bool
) -> ParityReport:
    """The gate before a run. A small job takes the first exact engine and spares loading the others (0.1-2 s each)."""
    if tokenizer.kind == "bytes":
        return ParityReport(tokenizer.name, tokenizer.reference().name, 0, 0, [])
    if all_engines:
        return check_parity(tokenizer, texts, timing_texts=timing_texts)
    report = check_parity(tokenizer, texts, engines=FAST_ENGINES[:1])
    return report if report.engines[0].exact else check_parity(tokenizer, texts)


def open_engine(tokenizer: Tokenizer, name: str) -> Engine:
    """The engine of this name, fast or reference; loaded once."""
    if name not in tokenizer.engines:
        tokenizer.engines[name] = tokenizer.fast(name) if name in FAST_ENGINES else tokenizer.reference()
    return tokenizer.engines[name]


def first_difference(rows: Sequence[Ids], reference: Engine, texts: Sequence[bytes]) -> int | None:
    """Which text's ids differ from the reference's; one that the reference gives up on proves nothing."""
    expected, _ = _reference_rows(reference, texts)
    return _first_difference(rows, expected)


def smallest_difference(engine: Engine, reference: Engine, text: bytes) -> Mismatch:
    """Cut a text down to the part on which the two still differ."""

    def differs(candidate: str) -> bool:
        row = _one_row(reference, candidate.encode())
        return row is not None and not np.array_equal(row, engine.encode([candidate.encode()])[0])

    small = shrink(text.decode(), differs)
    ids = [one.encode([small.encode()])[0].tolist() for one in (engine, reference)]
    return Mismatch(small, ids[0][:50], ids[1][:50])


def _check_engine(
    tokenizer: Tokenizer,
    name: str,
    sample: Sequence[bytes],
    expected: Sequence[Ids | None],
    timing_texts: Sequence[bytes],
) -> EngineReport:
    try:
        engine = open_engine(tokenizer, name)
    except Unsupported as error:
        return EngineReport(name, exact=False, documents=0, mb_per_s=0.0, unsupported=str(error))
    rate = _rate(engine, timing_texts)  # first, while the engine's cache knows nothing of the sample
    at = _first_difference(engine.encode(sample), expected)
    mismatch = None if at is None else smallest_difference(engine, tokenizer.reference(), sample[at])
    return EngineReport(name, at is None, len(sample), rate, mismatch)


def _rate(engine: Engine, texts: Sequence[bytes]) -> float:
    """MB/s a core, on the user's texts alone: runs of 5,000 equal letters are no measure of speed."""
    started = time.process_time()  # of all threads: in a run each worker has one core
    engine.encode(texts)
    return round(sum(map(len, texts)) / 1e6 / max(time.process_time() - started, 1e-9), 2)


def _first_difference(rows: Sequence[Ids], expected: Sequence[Ids | None]) -> int | None:
    for i, (row, wanted) in enumerate(zip(rows, expected, strict=True)):
        if wanted is not None and not np.array_equal(row, wanted):
            return i
    return None


def _reference_rows(reference: Engine, texts: Sequence[bytes]) -> tuple[list[Ids | None], int]:
    """Ids per text, None where the reference fails, and how many it could encode."""
    try:
        return list(reference.encode(texts)), len(texts)
    except ReferenceFailed:
        rows = [_one_row(reference, text) for text in texts]
        return rows, sum(row is not None for row in rows)


def _one_row(engine: Engine, text: bytes) -> Ids | None:
    try:
        return engine.encode([text])[0]
    except ReferenceFailed:
        return None


def shrink(text: str, differs: Callable[[str], bool], *, tries: int = 2_000) -> str:
    """Cut ever smaller pieces out of a text as long as it still differs."""
    piece = max(1, len(text) // 2)
    while tries > 0:
        position = 0
        while position < len(text) and tries > 0:
            candidate = text[:position] + text[position + piece :]
            tries -= 1
            if candidate and differs(candidate):
                text = candidate
            else:
                position += piece
        if piece == 1:
            break
        piece //= 2
    return text
