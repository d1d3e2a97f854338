"""The rate of the bare fast engine on text already in memory, one core: the limit that prepare is measured against."""

from __future__ import annotations

import json
import os
import sys
import time

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
    print(json.dumps({"engine": name, "seconds": time.perf_counter() - started, "tokens": tokens}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
