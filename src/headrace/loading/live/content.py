"""What files are known by, without reading them in full: name, size, and bytes from three places."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec
import xxhash

from headrace.errors import HeadraceError
from headrace.sources import SourceFile

PROBE_BYTES = 64 << 10
MOST_PROBED = 1_000  # files; of more than that some all over the list are looked into, and all are counted


def content_hash(files: Sequence[SourceFile]) -> str:
    """Changes when a file comes, goes, grows or is replaced; not when its folder moves or its date changes."""
    digest = xxhash.xxh3_128()
    step = -(-len(files) // MOST_PROBED)
    for number, file in enumerate(files):
        facts = (os.path.basename(file.path), file.size, file.revision)
        digest.update(msgspec.json.encode(facts))
        if number % step == 0 and file.revision is None:
            for probe in _probes(file):
                digest.update(probe)
    return digest.hexdigest()


def _probes(file: SourceFile) -> Iterator[bytes]:
    """The beginning, the middle and the end; all of a small file."""
    places = sorted({max(0, place) for place in (0, (file.size - PROBE_BYTES) // 2, file.size - PROBE_BYTES)})
    try:
        with open(file.path, "rb", buffering=0) as opened:
            for place in places:
                opened.seek(place)
                yield opened.read(PROBE_BYTES)
    except OSError as error:
        raise HeadraceError(
            f"{file.path} cannot be read: {error.strerror or error}. Check that it is still there and may be read."
        ) from error
