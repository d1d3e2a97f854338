"""The way of most training guides: datasets.map with a fast tokenizer, then one .pt file per chunk."""

import json
import os

from rival import PeakMemory, end_token, parse_arguments, report, tokenizer_json


def load(args):
    # Set before the import, which reads them: a fresh cache, or a second run would find the first run's work done.
    os.environ |= {"HF_HOME": str(args.out / "cache"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    import datasets

    builder = "parquet" if args.kind == ".parquet" else "json"
    return datasets.load_dataset(builder, data_files=[str(path) for path in args.input], split="train")


def tokenize_all(dataset, tokenizer, end_id, workers):
    def tokenize(batch):
        encodings = tokenizer.encode_batch(batch["text"], add_special_tokens=False)
        return {"input_ids": [[*encoding.ids, end_id] for encoding in encodings]}

    # The batch of 1,000 rows is datasets' default; for num_proc > 1 it sets TOKENIZERS_PARALLELISM=false itself.
    return dataset.map(tokenize, batched=True, num_proc=workers, remove_columns=dataset.column_names)


def write_chunks(tokenized, out, size):
    import torch

    tokens = []
    for row in tokenized:
        tokens.extend(row["input_ids"])
    for number, start in enumerate(range(0, len(tokens), size)):
        torch.save(torch.tensor(tokens[start : start + size]), out / f"chunk_{number:06d}.pt")
    return len(tokens)


def main():
    args = parse_arguments(__doc__)
    memory = PeakMemory()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_json(args.tokenizer, args.out)))
    tokenized = tokenize_all(load(args), tokenizer, end_token(tokenizer)[1], args.workers)
    tokens = write_chunks(tokenized, args.out, args.chunk_size)
    metadata = {"documents": len(tokenized), "tokens": tokens, "chunk_size": args.chunk_size}
    (args.out / "metadata.json").write_text(json.dumps(metadata))
    report("datasets_map", len(tokenized), tokens, memory)


if __name__ == "__main__":
    main()
