"""The fast engines. They are trusted only after parity.py has compared them with the reference.

gigatoken 0.10: `encode` per document is as fast as `encode_batch` (127 vs 104 MB/s on 4 KB documents, 60 vs 51 on
300-byte ones) and spares the import of awkward (0.3-0.8 s). Its word cache grows without bound, so the engine is
loaded anew when the process has grown too far. Neither engine can be pickled: each worker loads its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from headrace.tokenizers.base import Ids, Unsupported

CACHE_GROWTH_LIMIT = 256 << 20  # bytes the process may grow by before gigatoken's cache is thrown away


class Gigatoken:
    name = "gigatoken"

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._reload()

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        if resident_bytes() - self._resident_at_load > CACHE_GROWTH_LIMIT:
            self._reload()
        encode = self._encode
        return [encode(text) for text in texts]

    def _reload(self) -> None:
        self._encode: Any = None  # the old cache goes before the new one comes
        self._encode = _loaded("gigatoken", self._load).backend.encode
        self._resident_at_load = resident_bytes()


class Fastokens:
    name = "fastokens"

    def __init__(self, load: Callable[[], Any], id_offset: int = 0) -> None:
        self._tokenizer = _loaded("fastokens", load)
        self._id_offset = id_offset

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        strings = [text.decode() for text in texts]
        flat, offsets = self._tokenizer.encode_batch_flat(strings, split_special_tokens=True)
        ids = np.frombuffer(flat, np.uint32)
        if self._id_offset:
            ids = ids + np.uint32(self._id_offset)
        return [ids[start:stop] for start, stop in pairwise(np.frombuffer(offsets, np.int64).tolist())]


def from_json(engine: str, data: str) -> Gigatoken | Fastokens:
    """An engine from the contents of a tokenizer.json without its control tokens."""
    if engine == "gigatoken":
        return Gigatoken(lambda: _gigatoken().Tokenizer.from_json(data))
    return Fastokens(lambda: _fastokens().Tokenizer.from_json_str(data))


def from_ranks(
    engine: str, path: Path, *, pattern: str, scheme: str | None, id_offset: int = 0
) -> Gigatoken | Fastokens:
    """An engine from a tiktoken rank file; `scheme` is gigatoken's own name for the split pattern."""
    if engine == "fastokens":
        load = lambda: _fastokens().Tokenizer.from_tiktoken(str(path), pattern=pattern)  # noqa: E731
        return Fastokens(load, id_offset)
    if scheme is None:
        raise Unsupported("gigatoken does not know this split pattern")
    return Gigatoken(lambda: _gigatoken().Tokenizer.from_tiktoken(path, pretokenizer=scheme))


def resident_bytes() -> int:
    """Memory this process holds now (its peak where there is no /proc)."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def one_thread_each() -> None:
    """Keep native thread pools out of worker processes: one worker, one core. Call before an engine is loaded."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _loaded(engine: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Unsupported:
        raise
    except (Exception, BaseException) as error:
        # A native engine that cannot read a file panics with its own BaseException; anything but a wish to stop
        # means: not this engine.
        if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
            raise
        raise Unsupported(f"{engine} cannot load it: {error}") from error


def _gigatoken() -> Any:
    try:
        import gigatoken
    except ImportError as error:
        raise Unsupported("gigatoken is not installed") from error
    return gigatoken


def _fastokens() -> Any:
    try:
        import fastokens
    except ImportError as error:
        raise Unsupported("fastokens is not installed") from error
    return fastokens
