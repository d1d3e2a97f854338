"""Every id of a prepared dataset against the reference engine, document by document.

    python bench/exact.py --tokenizer FILE corpus/*.jsonl.zst

The corpus is prepared as a user would, with a file of hard cases beside it, and each document is encoded again by the
library that defines the tokenizer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from headrace import TokenStore, load_tokenizer, open_source
from headrace.sources import read_spans
from headrace.tokenizers.nasty import nasty_texts

HARD = ["", "<|endoftext|>", "<s></s><unk>", "a\x00b", "\ufeffBOM", "CRLF\r\n\r\n", "👨‍👩‍👧‍👦🏳️‍🌈👍🏽", "a" * 1_000_000]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--tokenizer", action="append", required=True)
    args = parser.parse_args()
    for name in args.tokenizer:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(check(name, args.files, Path(folder))), flush=True)


def check(name: str, files: list[str], folder: Path) -> dict[str, object]:
    tokenizer = load_tokenizer(name)
    hard = folder / "hard.jsonl"
    texts = [*HARD, *(text.decode() for text in nasty_texts(tokenizer.control_texts()))]
    hard.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    inputs = [*files, str(hard)]
    command = [sys.executable, "-m", "headrace", "prepare", *inputs, "--tokenizer", name, "--out", str(folder / "out")]
    subprocess.run([*command, "--chunk-size", "2048", "--workers", "2"], check=True, capture_output=True)
    return {"tokenizer": Path(name).name, **compare(TokenStore(folder / "out"), inputs)}


def compare(store: TokenStore, inputs: list[str]) -> dict[str, int]:
    source = open_source(inputs)
    reference = store.tokenizer.reference()
    documents = differing = 0
    for batch in read_spans(source.spans(8 << 20), source.options):
        for row in reference.encode(batch.texts):
            expected = np.append(row, np.uint32(store.metadata.eos_token_id or 0))
            differing += not np.array_equal(store.document(documents), expected)
            documents += 1
    assert documents == store.num_documents
    return {"documents": documents, "tokens": store.total_tokens, "differing": differing}


if __name__ == "__main__":
    main()
