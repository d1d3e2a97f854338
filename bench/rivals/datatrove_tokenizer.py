"""datatrove: a local executor whose tasks read files and tokenize them with DocumentTokenizer."""

import os

from rival import PeakMemory, end_token, parse_arguments, report, tokenizer_json


def reader(args):
    from datatrove.pipeline.readers import JsonlReader, ParquetReader

    # A paths file is how datatrove takes a list of files; its lines are relative to the data folder.
    folder = os.path.commonpath([path.resolve().parent for path in args.input])
    paths_file = args.out / "paths.txt"
    paths_file.write_text("".join(f"{path.resolve().relative_to(folder)}\n" for path in args.input))
    kind = ParquetReader if args.kind == ".parquet" else JsonlReader
    return kind(folder, paths_file=str(paths_file))


def run(args, tokenizer, end_name):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.tokens import DocumentTokenizer

    # No shuffle: the default rewrites every file a second time, which no other rival does.
    writer = DocumentTokenizer(
        output_folder=str(args.out / "tokens"),
        tokenizer_name_or_path=str(tokenizer),
        eos_token=end_name,
        shuffle_documents=False,
    )
    LocalPipelineExecutor(
        pipeline=[reader(args), writer],
        tasks=args.workers,
        workers=args.workers,
        logging_dir=str(args.out / "logs"),
    ).run()


def count(folder, token_bytes):
    """Documents and tokens, from the files written: an index entry has 8 bytes."""
    documents = sum(path.stat().st_size for path in folder.glob("*.ds.index")) // 8
    return documents, sum(path.stat().st_size for path in folder.glob("*.ds")) // token_bytes


def main():
    args = parse_arguments(__doc__)
    memory = PeakMemory()
    # A file is never divided between tasks. With a file per worker the tasks fill the cores, and threads inside them
    # would only contend; with fewer files the tokenizer's threads are what uses the idle cores.
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if len(args.input) >= args.workers > 1 else "true"
    os.environ |= {"HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": str(args.workers)}
    from tokenizers import Tokenizer

    path = tokenizer_json(args.tokenizer, args.out)
    tokenizer = Tokenizer.from_file(str(path))
    run(args, path, end_token(tokenizer)[0])
    # datatrove's own rule: two bytes when every id fits in them.
    documents, tokens = count(args.out / "tokens", 4 if tokenizer.get_vocab_size() > 2**16 else 2)
    report("datatrove_tokenizer", documents, tokens, memory)


if __name__ == "__main__":
    main()
