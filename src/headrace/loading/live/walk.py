"""Walk: the documents of a text in the order of a run, epoch after epoch, in groups to be tokenized.

A unit is what can be read on its own: a piece of a file. A shuffled epoch takes the units in a permuted order, so a
window of neighbouring chunks holds text from many places. A compressed file is one unit: to read it from the middle is
to decompress what lies before, every time.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from headrace.documents import Reject
from headrace.errors import DataRejected, HeadraceError
from headrace.loading.order import permute
from headrace.sources import ReadOptions, Source, Span, read_spans
from headrace.sources.stripes import MOST_FILES

UNIT_BYTES, MOST_UNITS = 256 << 10, 1 << 16  # opening a piece costs 0.3 ms, tokenizing this much 3 ms
REMOTE_UNIT_BYTES = 8 << 20  # on a hub it costs three requests, some 0.5 s
READ_BYTES = 1 << 20
GROUP_DOCUMENTS, GROUP_BYTES, LARGEST_GROUP = 8, 64 << 10, 4 << 20
SAMPLE_PLACES, SAMPLE_BYTES = 8, 256 << 10
REJECTS_TOLD, REJECTS_KEPT = 3, 100
DETAILS = re.compile(r" at (?:byte|character) .*| \(fields found.*", re.S)  # what makes equal reasons look different


class Place(NamedTuple):
    """Where a document stands: its unit is the one at this turn of the epoch's order."""

    epoch: int = 0
    turn: int = 0
    document: int = 0


class Group(NamedTuple):
    """Documents that are tokenized together. One without any says that the epoch has ended."""

    texts: list[bytes]
    places: list[Place]

    @property
    def size(self) -> int:
        return sum(map(len, self.texts))


class Rejects:
    """Records that were refused in the first epoch that is read; later epochs would count them again."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.counts: Counter[str] = Counter()
        self.first: list[Reject] = []
        self._report = report

    def add(self, rejects: Sequence[Reject]) -> None:
        for reject in rejects:
            if not reject.counts:
                continue
            self.counts[DETAILS.sub("", reject.reason)] += 1
            if len(self.first) < REJECTS_KEPT:
                self.first.append(reject)
            if self.counts.total() <= REJECTS_TOLD:
                self._report(f"Left out: {reject.file}, {reject.where}: {reject.reason}")

    def tell(self) -> None:
        if self.counts.total() > REJECTS_TOLD:
            listed = ", ".join(f"{count:,} x {reason}" for reason, count in self.counts.most_common(5))
            self._report(f"Left out in this epoch: {self.counts.total():,} records ({listed})")


class Walk:
    """Groups of documents from a place on, without end."""

    def __init__(
        self,
        units: Sequence[Sequence[Span]],
        options: ReadOptions,
        rejects: Rejects,
        *,
        name: str,
        group: int | None,
        seed: int,
        shuffle: bool,
    ) -> None:
        self._units, self._options, self._rejects, self._name = units, options, rejects, name
        self._group, self._seed, self._shuffle = group, seed, shuffle

    def groups(self, start: Place) -> Iterator[Group]:
        place, first = start, True
        while True:
            documents = 0
            for group in self._cut(self._documents(place, self._rejects if first else None)):
                documents += len(group.texts)
                yield group
            if not documents and not (place.turn or place.document):
                raise self._nothing()
            if first:
                self._rejects.tell()
            yield Group([], [])
            place, first = Place(place.epoch + 1), False

    def _documents(self, start: Place, rejects: Rejects | None) -> Iterator[tuple[bytes, Place]]:
        """Those of the rest of an epoch; the first unit's earlier ones are read again, but not tokenized."""
        order = self._order(start.epoch)
        for turn in range(start.turn, len(order)):
            skipped = start.document if turn == start.turn else 0
            document = 0
            for batch in read_spans(self._units[order[turn]], self._options, batch_bytes=READ_BYTES):
                if rejects is not None:
                    rejects.add(batch.rejects)
                for text in batch.texts:
                    if document >= skipped:
                        yield text, Place(start.epoch, turn, document)
                    document += 1

    def _order(self, epoch: int) -> list[int]:
        numbers = np.arange(len(self._units), dtype=np.int64)
        if self._shuffle:
            numbers = permute(numbers, len(numbers), seed=self._seed, epoch=epoch)
        return numbers.tolist()

    def _cut(self, documents: Iterator[tuple[bytes, Place]]) -> Iterator[Group]:
        """8 short documents take 20 us to tokenize and more than that to hand over, so short ones go by bytes."""
        least = GROUP_BYTES if self._group is None else 0
        wanted = self._group or GROUP_DOCUMENTS
        group, size = Group([], []), 0
        for text, place in documents:
            group.texts.append(text)
            group.places.append(place)
            size += len(text)
            if (len(group.texts) >= wanted and size >= least) or size >= LARGEST_GROUP:
                yield group
                group, size = Group([], []), 0
        if group.texts:
            yield group

    def _nothing(self) -> DataRejected:
        refused = self._rejects.counts.total()
        why = f"all {refused:,} records were refused" if refused else "its files are empty"
        first = self._rejects.first[0] if self._rejects.first else None
        shown = f" (the first: {first.file}, {first.where}: {first.reason})" if first else ""
        return DataRejected(f"{self._name} has no document to train on: {why}{shown}. Check the source and text_field.")


def find_units(source: Source) -> list[list[Span]]:
    """The pieces of a text that can be read on their own; they depend on the files only."""
    least = REMOTE_UNIT_BYTES if source.remote else UNIT_BYTES
    target = max(least, source.total_bytes // MOST_UNITS)
    if source.sequential:
        return [source.spans(target)]
    units = []
    few = len(source.files) <= MOST_FILES
    for file in source.files:
        alone = Source(source.name, [file], source.options)
        spans = alone.spans(max(target, file.size) if file.compression else target, share=few)
        units += [[span] for span in spans]
    return units


def take_sample(units: Sequence[Sequence[Span]], options: ReadOptions) -> list[bytes]:
    """The first documents of units all over the text, for the parity check."""
    chosen = units[:: max(1, len(units) // SAMPLE_PLACES)][:SAMPLE_PLACES]
    texts: list[bytes] = []
    for unit in chosen:
        room = SAMPLE_BYTES // len(chosen)
        # What cannot be read is reported by the run itself, when it comes to it.
        with contextlib.suppress(HeadraceError, OSError):
            batch = next(read_spans(unit, options, batch_bytes=room))
            texts += [text for text in batch.texts if len(text) <= room]
    return texts
