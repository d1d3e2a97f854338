"""Megatron-LM's preprocess_data.py written anew: a pool encodes JSON lines, the parent writes one indexed dataset."""

import json
import multiprocessing

from rival import PeakMemory, end_token, open_lines, parse_arguments, refuse, report, tokenizer_json


class Encoder:
    """Encodes a line in a worker; the tokenizer is loaded once per worker, by the pool's initializer."""

    def __init__(self, path):
        self.path = path

    def load(self):
        from tokenizers import Tokenizer

        Encoder.tokenizer = Tokenizer.from_file(self.path)
        Encoder.end_id = end_token(Encoder.tokenizer)[1]

    def encode(self, line):
        return [*Encoder.tokenizer.encode(json.loads(line)["text"], add_special_tokens=False).ids, Encoder.end_id]


def lines(paths):
    for path in paths:
        with open_lines(path) as stream:
            yield from stream


def write(args, path):
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

    from tokenizers import Tokenizer

    vocab_size = Tokenizer.from_file(path).get_vocab_size()
    encoder = Encoder(path)
    builder = IndexedDatasetBuilder(str(args.out / "text_document.bin"), dtype=DType.optimal_dtype(vocab_size))
    documents = tokens = 0
    with multiprocessing.Pool(args.workers, initializer=encoder.load) as pool:
        # 32 lines per message and add_document() are preprocess_data.py's own.
        for ids in pool.imap(encoder.encode, lines(args.input), 32):
            builder.add_document(ids, [len(ids)])
            documents, tokens = documents + 1, tokens + len(ids)
    builder.finalize(str(args.out / "text_document.idx"))
    return documents, tokens


def main():
    args = parse_arguments(__doc__)
    if args.kind == ".parquet":
        refuse("preprocess_data.py reads JSON lines only")
    memory = PeakMemory()
    documents, tokens = write(args, str(tokenizer_json(args.tokenizer, args.out)))
    report("megatron_preprocess", documents, tokens, memory)


if __name__ == "__main__":
    main()
