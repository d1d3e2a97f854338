"""The new fast way: gigatoken reads and encodes the files in threads, Megatron's builder writes them."""

import itertools
import os

from rival import END_TOKENS, PeakMemory, parse_arguments, refuse, report


def load_tokenizer(path):
    import gigatoken

    if path.suffix == ".model":
        return gigatoken.Tokenizer.from_sentencepiece(path)
    if path.suffix == ".tiktoken":
        return gigatoken.Tokenizer.from_tiktoken(path)
    return gigatoken.Tokenizer(path)


def end_id(tokenizer):
    ids = {token: number for number, token in tokenizer.vocab.items()}
    for name in END_TOKENS:
        if name.encode() in ids:
            return ids[name.encode()]
    refuse(f"the tokenizer has none of the end tokens {', '.join(END_TOKENS)}")
    return None


def source(args):
    import gigatoken

    # JsonlFileSource reads plain and zstd files alike.
    return (gigatoken.ParquetFileSource if args.kind == ".parquet" else gigatoken.JsonlFileSource)(args.input)


def write(documents, end, vocab_size, out):
    import numpy as np
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

    offsets, tokens = documents.layout.offsets.data, documents.layout.content.data
    builder = IndexedDatasetBuilder(str(out / "text_document.bin"), dtype=DType.optimal_dtype(vocab_size))
    for start, stop in itertools.pairwise(offsets):
        builder.add_document(np.append(tokens[start:stop], np.uint32(end)), [int(stop - start) + 1])
    builder.finalize(str(out / "text_document.idx"))
    return len(offsets) - 1, int(offsets[-1] - offsets[0]) + len(offsets) - 1


def main():
    args = parse_arguments(__doc__)
    os.environ["RAYON_NUM_THREADS"] = str(args.workers)  # read once, when gigatoken starts its threads
    memory = PeakMemory()
    tokenizer = load_tokenizer(args.tokenizer)
    encoded = tokenizer.encode_files(source(args))
    documents, tokens = write(encoded, end_id(tokenizer), tokenizer.vocab_size, args.out)
    report("gigatoken_megatron", documents, tokens, memory)


if __name__ == "__main__":
    main()
