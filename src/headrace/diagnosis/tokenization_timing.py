"""What an engine takes for a text, by the clock and by the processor: one by one, batched, in threads, prepared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.tokenizers import FAST_ENGINES, Engine, Tokenizer, Unsupported
from headrace.tokenizers.base import Ids

Encode = Callable[[Sequence[bytes]], Sequence[Any]]

ONE, PREPARED = "one by one", "prepared"
BATCHES = (8, 64)
BATCHED = f"in {BATCHES[-1]}s"
MEMORY_MAP = "memory map"  # the "engine" of what is prepared
LEAST_ROUNDS, ROUNDS = 3, 5  # as many as the time is divided for; cells whose one call takes longer get fewer


class Measured(NamedTuple):
    seconds: float
    cpu: float  # seconds of all threads
    texts: int
    bytes: int
    tokens: int


class Timing(msgspec.Struct, kw_only=True):
    """One engine, one length of text, one way; medians over rounds that were interleaved with all the others."""

    engine: str
    length: str
    way: str
    texts_per_call: int
    text_bytes: float  # of a text, on average
    ms_per_text: float
    ms_low: float  # the fastest round, and the slowest
    ms_high: float
    ms_per_call: float
    cpu_ms_per_text: float
    mb_per_s: float  # by the clock
    tokens_per_s: float
    mb_per_s_core: float  # by the processor
    tokens_per_s_core: float
    rounds: int


class Cell:
    """A way to have texts tokenized, and what was measured of it so far."""

    def __init__(self, engine: str, length: str, way: str, texts: Sequence[bytes], size: int, encode: Encode) -> None:
        self.engine, self.length, self.way, self.size = engine, length, way, size
        self._encode = encode
        self._calls = list(_batches(texts, size))
        self._turn = 0
        self.rounds: list[Measured] = []
        self.cost = 0.0  # seconds that the last round took

    def warm_up(self) -> None:
        """A first call finds an empty cache, or threads that have not begun: 80 ms for 64 short texts."""
        self._encode(self._calls[0])

    def measure(self, slice_seconds: float) -> None:
        """Calls for about so long, at least one, each time from where the last round stopped."""
        calls = count = tokens = size = 0
        clock, cpu = time.perf_counter(), time.process_time()
        end = clock + slice_seconds
        while not calls or time.perf_counter() < end:
            batch = self._calls[self._turn % len(self._calls)]
            tokens += sum(map(len, self._encode(batch)))
            self._turn += 1
            calls += 1
            count += len(batch)
            size += sum(map(len, batch))
        seconds, used = time.perf_counter() - clock, time.process_time() - cpu
        self.rounds.append(Measured(seconds, used, count, size, tokens))
        self.cost = seconds

    def timing(self) -> Timing:
        each = [1e3 * one.seconds / one.texts for one in self.rounds]
        ms, cpu = median(each), median(1e3 * one.cpu / one.texts for one in self.rounds)
        texts = sum(one.texts for one in self.rounds)
        size, tokens = (
            sum(column) / texts for column in ((r.bytes for r in self.rounds), (r.tokens for r in self.rounds))
        )
        cpu = max(cpu, 1e-6)
        return Timing(
            engine=self.engine,
            length=self.length,
            way=self.way,
            texts_per_call=self.size,
            text_bytes=size,
            ms_per_text=ms,
            ms_low=min(each),
            ms_high=max(each),
            ms_per_call=ms * self.size,
            cpu_ms_per_text=cpu,
            mb_per_s=size / ms / 1e3,
            tokens_per_s=1e3 * tokens / ms,
            mb_per_s_core=size / cpu / 1e3,
            tokens_per_s_core=1e3 * tokens / cpu,
            rounds=len(self.rounds),
        )


def _batches(texts: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    """Batches of `size` texts, going round where there are fewer."""
    for start in range(0, len(texts), size):
        yield [texts[(start + i) % len(texts)] for i in range(size)]


def run_rounds(cells: Sequence[Cell], seconds: float, on_round: Callable[[int], None]) -> None:
    """Round after round through all cells, so that a noisy moment hits all of them.

    Three rounds are whole, however busy the machine is. After them a cell is left out once it would not end in time,
    so that one slow way does not cost the others their rounds.
    """
    for cell in cells:
        cell.warm_up()
    end = time.perf_counter() + seconds
    slice_seconds = seconds / (ROUNDS * max(1, len(cells)))
    for number in range(ROUNDS):
        on_round(number)
        for cell in cells:
            if number < LEAST_ROUNDS or time.perf_counter() + cell.cost < end:
                cell.measure(slice_seconds)
        if number + 1 >= LEAST_ROUNDS and time.perf_counter() >= end:
            return


def one_by_one(engine: Engine) -> Encode:
    """As a loop does that tokenizes each sample when it comes to it."""
    return lambda texts: [engine.encode((text,))[0] for text in texts]


def in_threads(pool: ThreadPoolExecutor, engines: Sequence[Engine]) -> Encode:
    """A batch shared by threads, each with an engine of its own, as live text does it."""

    def encode(texts: Sequence[bytes]) -> list[Ids]:
        shares = [texts[number :: len(engines)] for number in range(len(engines))]
        jobs = [pool.submit(engine.encode, share) for engine, share in zip(engines, shares, strict=True) if share]
        return [row for job in jobs for row in job.result()]

    return encode


def load_engine(tokenizer: Tokenizer, name: str) -> Engine:
    """Always a new one, whose cache knows nothing yet."""
    return tokenizer.fast(name) if name in FAST_ENGINES else tokenizer.reference()


def loadable(tokenizer: Tokenizer) -> tuple[dict[str, float], dict[str, str]]:
    """Engines with the seconds they take to load, the reference last; and why the others cannot."""
    seconds: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name in (*FAST_ENGINES, "reference"):
        started = time.perf_counter()
        try:
            engine = load_engine(tokenizer, name)
        except Unsupported as error:
            refused[name] = str(error)
        else:
            seconds[engine.name] = time.perf_counter() - started
    return seconds, refused


class MappedTokens:
    """The tokens of some texts in a file, read back through a memory map: what a prepared dataset does."""

    def __init__(self, path: Path, dtype: np.dtype[Any], rows: Sequence[Ids]) -> None:
        self._path, self._dtype = path, dtype
        self._ends = np.cumsum([len(row) for row in rows]).tolist()
        path.write_bytes(np.concatenate([np.asarray(row) for row in rows]).astype(dtype).tobytes())
        self.open()

    def open(self) -> None:
        """Map it anew, so that its pages are met for the first time."""
        mapped = np.memmap(self._path, self._dtype, "r") if self._ends[-1] else np.zeros(0, self._dtype)
        self._tokens: NDArray[Any] = np.asarray(mapped)  # a plain view: slices of np.memmap itself cost 3 us each
        self._turn = 0

    def read(self, start: int, stop: int) -> NDArray[np.int64]:
        """A copy in the type that models take."""
        return self._tokens[start:stop].astype(np.int64)

    def _row(self, number: int) -> NDArray[np.int64]:
        return self.read(self._ends[number - 1] if number else 0, self._ends[number])

    def next_rows(self, texts: Sequence[bytes]) -> list[NDArray[np.int64]]:
        """Stands in for an engine: the rows of these texts, which are asked for in the order they were given."""
        first, count = self._turn, len(self._ends)
        self._turn = (first + len(texts)) % count
        return [self._row((first + number) % count) for number in range(len(texts))]
