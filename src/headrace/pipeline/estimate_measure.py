"""The rate of one core on a corpus of one's own: real tasks on a sample of it, read, tokenized, checked and written."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from headrace.errors import UsageError
from headrace.pipeline.counts import Counts, Stages
from headrace.pipeline.estimate_rates import Profile
from headrace.pipeline.plan import Task
from headrace.pipeline.results import Job
from headrace.pipeline.worker import EngineDiffers, TaskRunner
from headrace.sources import Source, Span, open_source, read_spans
from headrace.sources.splitting import split
from headrace.storage import dtype_for
from headrace.tokenizers import Tokenizer, choose_engine, load_tokenizer
from headrace.tokenizers.fast import one_thread_each
from headrace.tokenizers.parity import SAMPLE_BYTES

PLACES = 24
PART = 4 << 20  # input bytes at each place

Progress = Callable[[str], None]


def measure(
    name: str,
    tokenizer_name: str,
    *,
    seconds: float = 10.0,
    text_field: str | None = None,
    seed: int = 0,
    progress: Progress = lambda text: None,
) -> tuple[Profile, float]:
    """What one core does with this source, and about how many bytes of text the source has."""
    one_thread_each()
    tokenizer, source = load_tokenizer(tokenizer_name), open_source(name, text_field=text_field)
    spans = places(source, seed)
    progress("choosing the engine")
    engine = _engine(tokenizer, source, spans)
    with TemporaryDirectory(prefix="headrace-") as folder:
        runner = _runner(tokenizer, source, Path(folder))
        try:
            counts, cpu = _work(runner, spans, engine, seconds, progress)
        except EngineDiffers:
            engine = "reference"  # as a run goes on
            counts, cpu = _work(runner, spans, engine, seconds, progress)
    if not counts.text_bytes or not counts.tokens:
        raise UsageError(f"--measure {name}: there is no text in the places that were looked at. Name another SOURCE.")
    ratio = counts.input_bytes / counts.text_bytes
    profile = Profile(
        format=_format(source),
        core_mb_per_s=counts.text_bytes / max(cpu, 1e-9) / 1e6,
        file_bytes_per_byte=ratio,
        bytes_per_token=counts.text_bytes / counts.tokens,
        itemsize=dtype_for(tokenizer.vocab_size).itemsize,
        bytes_per_document=counts.text_bytes / max(1, counts.documents),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        said=f"{tokenizer.name} with {engine}, measured now on {counts.text_bytes / 1e6:.1f} MB of {name}",
    )
    return profile, source.total_bytes / ratio


def places(source: Source, seed: int) -> list[Span]:
    """A part from each 24th of the corpus, none twice; files in random order, so that few of them tell of all."""
    rng, files = random.Random(seed), source.files
    ends = np.cumsum([file.size for file in files])
    found: dict[int, dict[int, Span]] = {}
    for number in range(PLACES):
        position = (number + rng.random()) * int(ends[-1]) / PLACES
        index = min(int(np.searchsorted(ends, position, side="right")), len(files) - 1)
        here, spans = found.setdefault(index, {}), split(files[index], source.options, PART, share=True)
        # A compressed file is unpacked from its beginning: parts from there on, so that none is unpacked for nothing.
        within = (position - (int(ends[index]) - files[index].size)) / max(1, files[index].size)
        chosen = len(here) if files[index].compression else int(len(spans) * within)
        here.setdefault(min(chosen, len(spans) - 1), spans[min(chosen, len(spans) - 1)])
    order = rng.sample(sorted(found), len(found))
    return [found[index][number] for index in order for number in sorted(found[index])]


def _work(
    runner: TaskRunner, spans: Sequence[Span], engine: str, seconds: float, progress: Progress
) -> tuple[Counts, float]:
    """Counts and processor seconds of tasks on these spans, for about so long; the first only warms the engine up."""
    started = time.perf_counter()
    counts, cpu = Counts(), 0.0
    progress(f"{engine}, warming up")
    runner.run(Task(0, [spans[0]]), engine, _unheard)
    for number, span in enumerate(spans[1:] or spans, 1):
        progress(f"{engine}, part {number} of {max(1, len(spans) - 1)}")
        before = time.process_time()
        counts.add(runner.run(Task(number, [span]), engine, _unheard).result.counts)
        cpu += time.process_time() - before
        if time.perf_counter() - started > seconds:
            break
    return counts, cpu


def _unheard(counts: Counts, stages: Stages) -> None:
    """Nobody follows these tasks."""


def _engine(tokenizer: Tokenizer, source: Source, spans: Sequence[Span]) -> str:
    """The one that the gate of a run would take."""
    texts: list[bytes] = []
    for batch in read_spans(spans[:1], source.options):
        texts += batch.texts
        if sum(map(len, texts)) >= SAMPLE_BYTES:
            break
    return choose_engine(tokenizer, texts, all_engines=False).fastest if texts else "reference"


def _runner(tokenizer: Tokenizer, source: Source, folder: Path) -> TaskRunner:
    special = tokenizer.special
    job = Job(
        folder=str(folder),
        parts=str(folder),
        tokenizer=str(folder / "tokenizer"),
        likely_engine=None,
        read=source.options,
        dtype=dtype_for(tokenizer.vocab_size).name,
        eos_id=special.eos,
        bos_id=None,
        val_fraction=0.0,
        val_seed=0,
        verify="sample",
        batch_size=None,
        sha256=False,
    )
    return TaskRunner(job, tokenizer)


def _format(source: Source) -> str:
    file = source.files[0]
    return f"{file.format}.{file.compression}" if file.compression else file.format
