"""Prepare the Python library's own source, then read it back: chunks, documents, text, validation split.

python examples/prepare_and_read.py [FOLDER] [--max-chunks N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import headrace as hr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the dataset goes (default: a temporary folder)")
    parser.add_argument("--max-chunks", type=int, help="only so much of it")
    arguments = parser.parse_args()
    if arguments.folder is not None:
        prepare_and_read(arguments.folder, arguments.max_chunks)
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare_and_read(Path(folder) / "stdlib", arguments.max_chunks)


def prepare_and_read(folder: Path, max_chunks: int | None) -> None:
    # The second time this returns at once: the dataset is there, with these very settings.
    store = hr.prepare("python-stdlib", out=folder, chunk_size=1024, val_fraction=0.05, max_chunks=max_chunks)
    print(store)

    tokens = sum(len(chunk) for chunk in store)  # views of the memory map, nothing is copied
    print(f"{len(store)} chunks hold {tokens} of {store.total_tokens} tokens")
    print(f"the first ids: {store[0][:8].tolist()}")
    print(f"as text: {store.decode(store[0][:32])!r}")

    # Packing is a view: the same tokens at another context length, without tokenizing again.
    longer = hr.TokenStore(folder, chunk_size=4096)
    print(f"at 4096 tokens a chunk: {len(longer)} chunks")

    lengths = store.document_lengths()
    longest = int(lengths.argmax())
    print(f"the longest of {store.num_documents} documents has {len(store.document(longest))} tokens")

    val = hr.TokenStore(folder, split="val")
    print(f"set aside for validation: {val.num_documents} documents, {val.total_tokens} tokens")


if __name__ == "__main__":
    main()
