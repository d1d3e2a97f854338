"""Short, medium and long texts, in every way that an engine can take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace.diagnosis.tokenization_corpus import Cost
from headrace.diagnosis.tokenization_sample import LENGTHS, Sample, cut_texts
from headrace.diagnosis.tokenization_timing import (
    BATCHED,
    BATCHES,
    MEMORY_MAP,
    ONE,
    PREPARED,
    Cell,
    Encode,
    MappedTokens,
    Timing,
    in_threads,
    load_engine,
    run_rounds,
)
from headrace.storage import dtype_for
from headrace.tokenizers import Engine, Tokenizer, open_engine

COUNTS = {"short": 512, "medium": 128, "long": 64}  # texts of each length, if the sample has so many
MOST_OF_BUDGET = 0.1  # a single call that would take more of the seconds is left out


class LengthTimer:
    """Engines here have seen the texts before: this is the cost of calls, and the corpus's own documents are beside."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        sample: Sample,
        costs: Sequence[Cost],
        folder: Path,
        workers: int,
        seconds: float,
        seed: int,
    ) -> None:
        self._tokenizer, self._folder, self._limit = tokenizer, folder, MOST_OF_BUDGET * seconds
        self._rates = {cost.engine: cost.mb_per_s_core for cost in costs if cost.way == BATCHED}
        self._threads = min(workers, BATCHES[-1])
        self._texts = {name: cut_texts(sample.parts, size, COUNTS[name], seed) for name, size in LENGTHS.items()}
        self.left_out: list[str] = []

    def run(self, seconds: float, progress: Callable[[str], None]) -> list[Timing]:
        with ThreadPoolExecutor(self._threads, thread_name_prefix="headrace-tokenize") as pool:
            cells = [*self._engine_cells(pool), *self._prepared_cells()]
            run_rounds(cells, seconds, lambda number: progress(f"three lengths of text, round {number + 1}"))
        return [cell.timing() for cell in cells]

    def _engine_cells(self, pool: ThreadPoolExecutor) -> Iterator[Cell]:
        for name in self._rates:
            engine = open_engine(self._tokenizer, name)
            shared = [load_engine(self._tokenizer, name) for _ in range(self._threads)] if self._threads > 1 else []
            for length, texts in self._texts.items():
                for way, size, encode in _ways(engine, shared, pool):
                    if self._in_time(name, length, way, size):
                        yield Cell(name, length, way, texts, size, encode)

    def _in_time(self, engine: str, length: str, way: str, size: int) -> bool:
        texts = self._texts[length]
        expected = size * sum(map(len, texts)) / len(texts) / 1e6 / self._rates[engine]
        if size == 1 or expected <= self._limit:
            return True
        self.left_out.append(
            f"{engine}, {length} texts {way}: left out, a call takes about {expected:.2g} s. Give more --seconds."
        )
        return False

    def _prepared_cells(self) -> Iterator[Cell]:
        for length, texts in self._texts.items():
            rows = self._tokenizer.reference().encode(texts)
            mapped = MappedTokens(self._folder / f"{length}.bin", dtype_for(self._tokenizer.vocab_size), rows)
            yield Cell(MEMORY_MAP, length, PREPARED, texts, 1, mapped.next_rows)


def _ways(engine: Engine, shared: Sequence[Engine], pool: ThreadPoolExecutor) -> Iterator[tuple[str, int, Encode]]:
    yield ONE, 1, engine.encode
    for size in BATCHES:
        yield f"in {size}s", size, engine.encode
    if shared:
        yield f"{len(shared)} threads", BATCHES[-1], in_threads(pool, shared)
