"""The rate of the bare fast engine on text already in memory, one core: the limit that prepare is measured against.

With --part K/N this process takes every N-th span, as one worker of N would, says "ready" when its text is in memory
and begins when it reads a line: so N of them run at once, which is what the cores of a shared machine really give.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"


def main() -> None:
    from headrace.sources import open_source, read_spans
    from headrace.tokenizers import choose_engine, load_tokenizer, open_engine

    args = parse()
    source = open_source(args.files)
    spans = source.spans(8 << 20)[args.part[0] :: args.part[1]]
    batches = [batch.texts for batch in read_spans(spans, source.options)]
    loaded = load_tokenizer(args.tokenizer)
    name = choose_engine(loaded, batches[0], all_engines=True).fastest
    engine = open_engine(loaded, name)
    wait_for_the_others(args.part[1])
    started = time.perf_counter()
    tokens = sum(len(row) for texts in batches for row in engine.encode(texts))
    seconds = time.perf_counter() - started
    result = {"engine": name, "seconds": seconds, "tokens": tokens}
    if name == "gigatoken" and args.part[1] == 1:
        result["str_seconds"] = as_published(loaded, batches)
    print(json.dumps(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--part", type=part, default=(0, 1), help="K/N, K from 0")
    return parser.parse_args()


def part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


def wait_for_the_others(count: int) -> None:
    if count > 1:
        print("ready", flush=True)
        sys.stdin.readline()


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
    main()
