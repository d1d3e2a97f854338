"""What every rival shares: its arguments, its inputs, its tokenizer and the one line it prints."""

import argparse
import io
import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil

CANNOT_READ = 4
KINDS = (".jsonl.zst", ".jsonl", ".parquet")
# A tokenizer.json does not say which of its special tokens ends a document, so the names in use are tried in turn.
END_TOKENS = ("<｜end▁of▁sentence｜>", "</s>", "<|endoftext|>", "<|end_of_text|>")


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--input", nargs="+", required=True, type=Path, help=f"files of one kind: {', '.join(KINDS)}")
    parser.add_argument("--tokenizer", required=True, type=Path, help="tokenizer.json or SentencePiece .model")
    parser.add_argument("--out", required=True, type=Path, help="a new or empty folder")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--chunk-size", type=int, default=2048, help="read only by rivals that cut chunks")
    args = parser.parse_args()
    if args.out.exists() and any(args.out.iterdir()):
        # datasets and datatrove skip work they find done: a second run in the same folder would measure nothing.
        parser.error(f"{args.out} is not empty: a rival that finds its earlier output skips the work")
    args.out.mkdir(parents=True, exist_ok=True)
    args.kind = input_kind(args.input)
    return args


def input_kind(paths):
    kinds = {next((kind for kind in KINDS if path.name.endswith(kind)), path.suffix) for path in paths}
    if len(kinds) != 1 or not kinds <= set(KINDS):
        refuse(f"reads one of {', '.join(KINDS)} at a time, not {', '.join(sorted(kinds))}")
    return kinds.pop()


def refuse(reason):
    print(f"cannot run: {reason}", file=sys.stderr)
    sys.exit(CANNOT_READ)


def open_lines(path):
    """A text stream over a plain or zstd JSONL file, as a user writes it in Python."""
    if path.suffix == ".zst":
        import zstandard

        # zstandard.open() stops, silently, at the end of the first frame; parallel compressors write many.
        packed = open(path, "rb")  # noqa: SIM115 - a rival is short-lived
        frames = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        return io.TextIOWrapper(frames, encoding="utf-8")
    return open(path, encoding="utf-8")


def tokenizer_json(path, folder):
    """The path of a tokenizer.json: the file itself, or a conversion of a SentencePiece model written to `folder`."""
    if path.suffix == ".json":
        return path
    if path.suffix != ".model":
        refuse(f"reads tokenizer.json or SentencePiece .model, not {path.name}")
    from sentencepiece_json import convert

    converted = folder / "tokenizer.json"
    convert(path).save(str(converted))
    return converted


def end_token(tokenizer):
    """Name and id of the token that ends a document."""
    for name in END_TOKENS:
        if tokenizer.token_to_id(name) is not None:
            return name, tokenizer.token_to_id(name)
    refuse(f"the tokenizer has none of the end tokens {', '.join(END_TOKENS)}")
    return None


class PeakMemory(threading.Thread):
    """Keeps the highest resident size of any one process of this tree, from the kernel's own high-water marks."""

    # Not getrusage(), which misses the workers of a fork server.

    def __init__(self):
        super().__init__(daemon=True)
        self.kilobytes = 0
        self.start()

    def run(self):
        while True:
            self.sample()
            time.sleep(0.2)  # only growth in a process's last 0.2 s can be missed

    def sample(self):
        me = psutil.Process()
        for process in [me, *me.children(recursive=True)]:
            self.kilobytes = max(self.kilobytes, high_water_mark(process.pid))


def high_water_mark(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it ended between the listing and the read
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def seconds_since_start():
    """Wall time since the kernel started this process, so that interpreter start and imports count."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def report(rival, documents, tokens, memory):
    seconds = round(seconds_since_start(), 2)
    memory.sample()
    peak = round(memory.kilobytes / 1024)
    print(
        json.dumps({"rival": rival, "documents": documents, "tokens": tokens, "seconds": seconds, "peak_rss_mb": peak})
    )
