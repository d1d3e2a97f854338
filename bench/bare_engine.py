"""The rate of the bare fast engine on text already in memory, one core: the limit that prepare is measured against."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"


def main(tokenizer: str, files: list[str]) -> None:
    from headrace.sources import open_source, read_spans
    from headrace.tokenizers import choose_engine, load_tokenizer, open_engine

    source = open_source(files)
    batches = [batch.texts for batch in read_spans(source.spans(8 << 20), source.options)]
    loaded = load_tokenizer(tokenizer)
    name = choose_engine(loaded, batches[0], all_engines=True).fastest
    engine = open_engine(loaded, name)
    started = time.perf_counter()
    tokens = sum(len(row) for texts in batches for row in engine.encode(texts))
    seconds = time.perf_counter() - started
    result = {"engine": name, "seconds": seconds, "tokens": tokens}
    if name == "gigatoken":
        result["str_seconds"] = as_published(loaded, batches)
    print(json.dumps(result))


def as_published(loaded: Any, batches: list[list[bytes]]) -> float:
    """gigatoken as its page shows it: `encode_batch` on a list of str."""
    import awkward  # noqa: F401 - it loads this at its first batch

    encode = loaded.fast("gigatoken")._encode.__self__.encode_batch
    strings = [[text.decode() for text in texts] for texts in batches]
    started = time.perf_counter()
    for texts in strings:
        encode(texts, parallel=False)
    return time.perf_counter() - started


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
