"""A sample of a corpus from places all over it, the same for the same seed, and texts of a given length cut from it."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import msgspec

from headrace.documents import DocumentBatch
from headrace.errors import UsageError
from headrace.sources import Source, SourceFile, Span, read_span
from headrace.sources.hub import SCHEME
from headrace.sources.splitting import split
from headrace.sources.stripes import MOST_FILES

PLACES = 24  # a quarter of them warms the engines up, and 18 are measured
COUNTED_BYTES = 32 << 20  # a corpus up to this size is read whole, which takes a fraction of a second
DEEPEST = 64 << 20  # compressed bytes: what lies deeper in a file is reached only by unpacking all before it
LARGEST_PART = 32 << 20
SMALLEST_SPAN = 4 << 10
SMALLEST_PACKED = 256 << 10  # 64 KiB are unpacked at a time, and a range should hold several of these
LENGTHS = {"short": 100, "medium": 2_000, "long": 50_000}  # bytes


class Part(msgspec.Struct):
    """Documents that follow one another in the corpus."""

    place: str
    texts: list[bytes]  # as much of it as is measured
    input_bytes: int = 0  # that the reader moved in its file
    text_bytes: int = 0  # that it found there

    @property
    def sample_bytes(self) -> int:
        return sum(map(len, self.texts))


class Sample(msgspec.Struct):
    parts: list[Part]
    places: int  # a corpus that cannot be entered in the middle has several parts at one place
    corpus_input_bytes: int
    corpus_text_bytes: int | None = None  # counted, if it was small enough
    corpus_documents: int | None = None
    notes: list[str] = []

    @property
    def texts(self) -> list[bytes]:
        return [text for part in self.parts for text in part.texts]


def take_sample(source: Source, part_bytes: int, seed: int = 0) -> Sample:
    """About `part_bytes` from each of 24 places, one in each 24th of the corpus."""
    files, notes = list(source.files), []
    if any(file.path.startswith(SCHEME) for file in files):
        files = files[:1]
        notes.append(f"The sample is from one file of the {len(source.files)} on the hub: the error tells of that one.")
    places = _find_places(source, files, seed)
    each = max(1, round(PLACES / len(places)))
    stops = [*(place[:2] for place in places[1:]), (len(files), 0)]
    parts = [
        part
        for place, stop in zip(places, stops, strict=True)
        for part in _read_parts(source, files, place, stop, part_bytes, each)
    ]
    if not any(part.texts for part in parts):
        raise UsageError(f"{source.name} has no text in the places that were looked at. Name a SOURCE that has.")
    if len(places) < PLACES // 2:
        notes.append(
            f"The corpus could be entered at {len(places)} places only, so the error may be larger than given."
        )
    sample = Sample([part for part in parts if part.texts], len(places), source.total_bytes, notes=notes)
    if source.total_bytes <= COUNTED_BYTES and len(files) == len(source.files):
        _count(source, sample)
    return sample


def _find_places(source: Source, files: Sequence[SourceFile], seed: int) -> list[tuple[int, int, Span]]:
    """File, number of the span in it, and the span; one for each place, in order, none twice."""
    ends = list(accumulate(file.size for file in files))
    rng = random.Random(seed)
    positions = [(number + rng.random()) * ends[-1] / PLACES for number in range(PLACES)]
    found = {}
    for position in positions:
        index = min(bisect_right(ends, position), len(files) - 1)
        number, span = _span_at(source, files[index], position - (ends[index] - files[index].size))
        found[index, number] = span
    return [(index, number, span) for (index, number), span in sorted(found.items())]


def _spans(source: Source, file: SourceFile) -> list[Span]:
    smallest = SMALLEST_PACKED if file.compression else SMALLEST_SPAN
    target = max(smallest, source.total_bytes // (8 * PLACES))
    return split(file, source.options, target, share=len(source.files) <= MOST_FILES)


def _span_at(source: Source, file: SourceFile, offset: float) -> tuple[int, Span]:
    spans = _spans(source, file)
    ends = list(accumulate(span.size for span in spans))
    number = min(bisect_right(ends, offset), len(spans) - 1)
    while spans[number].compression and spans[number].start > DEEPEST:
        number -= 1
    return number, spans[number]


def _read_parts(
    source: Source,
    files: Sequence[SourceFile],
    place: tuple[int, int, Span],
    stop: tuple[int, int],
    size: int,
    count: int,
) -> list[Part]:
    """`count` parts from one place on, but not into the next place."""
    parts = [Part(f"{place[2].path} from {place[2].start:,}", [])]
    room = size
    for batch in _documents(source, files, place, stop):
        part = parts[-1]
        # A reader moves piece by piece, and what follows in a piece moves no further: parts are cut between pieces, so
        # that their input and their text belong together.
        if room <= 0 and (batch.input_bytes > 0 or part.text_bytes > LARGEST_PART):
            if len(parts) == count:
                break
            part, room = Part(part.place, []), size
            parts.append(part)
        part.input_bytes += batch.input_bytes
        for text in batch.texts:
            part.text_bytes += len(text)
            if room > 0 and text:
                part.texts.append(clip(text, room))
                room -= len(text)
    return parts


def _documents(
    source: Source, files: Sequence[SourceFile], place: tuple[int, int, Span], stop: tuple[int, int]
) -> Iterator[DocumentBatch]:
    first, number, _ = place
    for index in range(first, min(stop[0] + 1, len(files))):
        spans = _spans(source, files[index])
        begin = number if index == first else 0
        end = stop[1] if index == stop[0] else len(spans)
        yield from chain.from_iterable(read_span(span, source.options, batch_documents=1) for span in spans[begin:end])


def _count(source: Source, sample: Sample) -> None:
    sample.corpus_text_bytes = sample.corpus_documents = 0
    for file in source.files:
        for span in _spans(source, file):
            for batch in read_span(span, source.options):
                sample.corpus_text_bytes += sum(map(len, batch.texts))
                sample.corpus_documents += len(batch.texts)


def cut_texts(parts: Sequence[Part], length: int, count: int, seed: int = 0) -> list[bytes]:
    """Texts of about `length` bytes from all over the sample; fewer, or a shorter one, where it has no more."""
    pieces = _pieces(b"\n\n".join(text for part in parts for text in part.texts), length)
    random.Random(seed).shuffle(pieces)
    return pieces[:count]


def _pieces(text: bytes, length: int) -> list[bytes]:
    """Cut between characters; a shorter rest is left out, unless there is nothing else."""
    found: list[bytes] = []
    start = 0
    while start < len(text):
        piece = clip(text[start : start + length + 4], length)
        if found and len(piece) < length - 3:  # a character has up to 4 bytes
            break
        found.append(piece)
        start += len(piece)
    return found


def clip(text: bytes, length: int) -> bytes:
    """The beginning of a text, at most `length` bytes, cut between characters."""
    if len(text) <= length:
        return text
    while length > 0 and text[length] & 0xC0 == 0x80:
        length -= 1
    return text[:length]
