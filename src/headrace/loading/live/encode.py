"""Engines: which engine tokenizes, and an Encoder for each thread, which goes on checking it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.loading.live.walk import Group, Place
from headrace.storage import dtype_for
from headrace.tokenizers import FAST_ENGINES, Engine, ParityReport, Tokenizer, choose_engine
from headrace.tokenizers.base import Ids
from headrace.tokenizers.parity import first_difference, smallest_difference

CHECK_EVERY, CHECK_AT_MOST = 1_000, 128 << 10  # as prepare does: one document in so many, unless it is very long
REFERENCE = "reference"


class Encoded(NamedTuple):
    """A group's tokens end to end, each document with its EOS, and where each document begins."""

    tokens: NDArray[Any]
    begins: NDArray[np.int64]
    places: list[Place]


class Engines:
    """The choice of the parity check, for all threads; once a check fails during the run, the reference."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        eos: int,
        sample: Sequence[bytes],
        *,
        report: Callable[[str], None],
        verbose: bool,
    ) -> None:
        self.tokenizer, self.eos, self.report, self.verbose = tokenizer, eos, report, verbose
        self.dtype = dtype_for(tokenizer.vocab_size)
        self._lock = threading.Lock()
        checked = choose_engine(tokenizer, sample, all_engines=False)
        self.name = checked.fastest if checked.fastest in FAST_ENGINES else REFERENCE
        self._idle = [engine for name, engine in tokenizer.engines.items() if name == self.name]
        tokenizer.engines.clear()  # those that lost
        self._tell(checked)

    @contextmanager
    def lend(self) -> Iterator[Callable[[Group], Encoded]]:
        """What encodes in one thread. Its engine is kept for the next one: loading takes 0.1-2 s."""
        encoder = Encoder(self)
        yield encoder.encode
        self._idle.append(encoder.engine)

    def load(self, name: str) -> Engine:
        """An engine that no other thread has."""
        with self._lock:
            for idle in self._idle:
                if idle.name == name:
                    self._idle.remove(idle)
                    return idle
        return self.tokenizer.fast(name) if name in FAST_ENGINES else self.tokenizer.reference()

    def give_up(self, name: str, reason: str) -> None:
        with self._lock:
            if self.name != name:
                return  # another thread was first
            self.name = REFERENCE
        self.report(f"{name} is left out from here on: {reason}. Tokenizing with the reference engine.")

    def _tell(self, checked: ParityReport) -> None:
        for engine in checked.engines:
            if engine.mismatch is not None:
                self.report(f"{engine.engine} is left out: it differs on {engine.mismatch.describe()}")
            elif engine.unsupported is not None:
                self.report(f"{engine.engine} is left out: {engine.unsupported}")
        if self.name == REFERENCE and checked.engines:
            self.report(f"No fast engine gives the ids of {checked.reference}, so that tokenizes, more slowly.")
        elif self.verbose and checked.engines:
            self.report(f"Tokenizing with {self.name}: exact on {checked.documents} test documents.")


class Encoder:
    """One thread's engine: groups in, tokens out."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._name = engines.name
        self.engine = engines.load(self._name)
        self._seen = 0

    def encode(self, group: Group) -> Encoded:
        started = time.perf_counter()
        rows = self._rows(group.texts)
        if self._engines.verbose and group.texts:
            self._engines.report(sentence(len(group.texts), time.perf_counter() - started))
        return Encoded(*join(rows, self._engines.eos, self._engines.dtype), group.places)

    def _rows(self, texts: Sequence[bytes]) -> list[Ids]:
        if self._name != self._engines.name:
            self._name = self._engines.name
            self.engine = self._engines.load(self._name)
        try:
            rows = self.engine.encode(texts)
            reason = self._trouble(texts, rows)
        except (MemoryError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a native engine panics with its own BaseException
            if self._name not in FAST_ENGINES:
                raise
            reason = f"{type(error).__name__}: {error}"
        if reason is None:
            return rows
        self._engines.give_up(self._name, reason)
        return self._rows(texts)

    def _trouble(self, texts: Sequence[bytes], rows: Sequence[Ids]) -> str | None:
        """How the ids differ from the reference's, if one of these documents is to be checked and they do."""
        first = -self._seen % CHECK_EVERY
        self._seen += len(texts)
        if self._name not in FAST_ENGINES:
            return None
        chosen = [i for i in range(first, len(texts), CHECK_EVERY) if len(texts[i]) <= CHECK_AT_MOST]
        if not chosen:
            return None
        reference, picked = self._engines.load(REFERENCE), [texts[i] for i in chosen]
        at = first_difference([rows[i] for i in chosen], reference, picked)
        if at is None:
            return None
        return f"it differs on {smallest_difference(self.engine, reference, picked[at]).describe()}"


def join(rows: Sequence[Ids], eos: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Documents end to end, EOS behind each, and where each begins."""
    bounds = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) + 1 for row in rows], out=bounds[1:])
    tokens = np.full(bounds[-1], eos, dtype)
    for row, begin in zip(rows, bounds.tolist(), strict=False):
        tokens[begin : begin + len(row)] = row
    return tokens, bounds[:-1]


def sentence(samples: int, seconds: float) -> str:
    milliseconds = seconds * 1e3
    return f"Batch tokenized {samples} samples in {milliseconds:.1f}ms ({milliseconds / samples:.1f}ms per sample)"
