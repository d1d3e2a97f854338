"""The commands of the original guides, as the guides write them."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest_cli import Done, Headrace, finish
from conftest_events import a_run
from conftest_pipeline import make_texts, write_jsonl
from headrace import TokenStore
from headrace.cli.original import newest_run, split_options, translated
from headrace.telemetry import EventLog

ROOT = Path(__file__).parents[2]
Script = Callable[..., Done]


@pytest.fixture
def script(
    headrace_here: Headrace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Script:
    """A script of the guides in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(line: str, check: int = 0) -> Done:
        name, *words = line.split()
        monkeypatch.setattr(sys, "argv", [name, *words])
        return finish(lambda: runpy.run_path(str(ROOT / name), run_name="__main__"), capsys, check)

    return run


def run_outside(line: str, folder: Path) -> str:
    """The same in a process of its own; gives stderr."""
    name, *words = line.split()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / name), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--chunk_size 64 --num_proc 8", "--chunk-size 64 --workers 8"),
        ("--chunk-size=64 --num_proc=8", "--chunk-size 64 --workers 8"),
        ("--dataset cerebras/SlimPajama-627B --output out_dir", "--dataset slimpajama --out out_dir"),
        ("--dataset=HuggingFaceFW/fineweb-edu --pretokenized", "--dataset finewebedu --pretokenized"),
        ("--dataset someone/else_data", "--dataset someone/else_data"),
        ("--tokenizer cerebras/SlimPajama-627B", "--tokenizer cerebras/SlimPajama-627B"),
        ("--config large --mixed_precision --tokens_per_chunk 512", "--size large --mixed-precision --seq-len 512"),
    ],
)
def test_options_by_their_names_here(words: str, expected: str) -> None:
    assert list(translated(words.split())) == expected.split()


def test_pretokenize_and_pack(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "tales.jsonl", make_texts(300))
    line = "scripts/pretokenize_and_pack.py --dataset tales.jsonl --chunk_size 512 --num_proc 2 --batch_size 100"
    said = run_outside(line, tmp_path)
    assert said.startswith(
        "This is: headrace prepare --dataset tales.jsonl --chunk-size 512 --workers 2 --batch-size 100\n"
    )
    store = TokenStore(tmp_path / "data" / "tales")
    assert (store.chunk_size, store.num_documents) == (512, 300)


def test_pretokenize_dataset(tmp_path: Path, real_tokenizers: dict[str, Path]) -> None:
    write_jsonl(tmp_path / "tales.jsonl", make_texts(20))
    model = tmp_path / "mistral.model"
    model.write_bytes(real_tokenizers["mistral"].read_bytes())
    line = f"scripts/pretokenize_dataset.py --dataset tales.jsonl --output out --tokenizer {model}"
    assert f"This is: headrace prepare --dataset tales.jsonl --out out --tokenizer {model}\n" in run_outside(
        line, tmp_path
    )
    store = TokenStore(tmp_path / "out")
    assert store.metadata.tokenizer.kind == "sentencepiece"
    assert store.decode(store.document(7)[:-1]).startswith("Document 7.")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (
            "scripts/pretokenize_and_pack.py --dataset finewebedu --chunk_size 32768 --num_proc 8 --batch_size 2000",
            "headrace prepare --dataset finewebedu --chunk-size 32768 --workers 8 --batch-size 2000",
        ),
        (
            "scripts/pretokenize_dataset.py --dataset cerebras/SlimPajama-627B --output out --tokenizer bytes",
            "headrace prepare --dataset slimpajama --out out --tokenizer bytes",
        ),
        (
            "examples/train_slimpajama.py --max-chunks 10 --tokens-per-chunk 512",
            "headrace train --dataset slimpajama --max-chunks 10 --seq-len 512",
        ),
    ],
)
def test_what_lies_on_the_hub_is_asked_for_there(script: Script, line: str, command: str) -> None:
    done = script(line, check=1)
    first, rest = done.stderr.split("\n", 1)
    assert first == f"This is: {command}"
    assert "The Hugging Face hub could not be reached" in rest


GUIDE = (
    "examples/train_digitalocean.py --config {config} --dataset {dataset} --pretokenized --epochs 1 --mixed_precision "
    "--gradient_accumulation 4 --num_workers 8 --use_8bit_optim"
)


def test_train_digitalocean_without_data(script: Script) -> None:
    done = script(GUIDE.format(config="large", dataset="finewebedu"), check=1)
    first, second = done.stderr.splitlines()
    assert first == (
        "This is: headrace train --size large --dataset finewebedu --pretokenized --epochs 1 --mixed-precision "
        "--gradient-accumulation 4 --num-workers 8 --use-8bit-optim"
    )
    assert second == (
        "error: No chunks found in data/finewebedu. Make them with: headrace prepare finewebedu --out data/finewebedu"
    )


def test_train_digitalocean(script: Script, headrace_here: Headrace, tmp_path: Path) -> None:
    """The guide's own line, with the smallest model and a dataset of 150 chunks."""
    write_jsonl(tmp_path / "tales.jsonl", make_texts(300))
    headrace_here("prepare", "tales.jsonl", "--tokenizer", "bytes", "--chunk-size", 32, "--max-chunks", 150)
    done = script(f"{GUIDE.format(config='nano', dataset='tales')} --eval-batches 1 --no-tensorboard --json")
    result = json.loads(done.stdout)
    assert (result["step"], result["tokens"]) == (148 // 64, 2 * 64 * 32)
    run = json.loads((tmp_path / "runs" / "transformer-nano-tales" / "run.json").read_text())
    assert run["train"]["optimizer"] == "adamw8bit"


def test_train_slimpajama_test(script: Script, tmp_path: Path) -> None:
    done = script("examples/train_slimpajama.py --test --verbose")
    first, second, *rest = done.stderr.splitlines()
    assert first == "--test: the Python library's own source, which needs no network, in the place of slimpajama."
    assert second == "This is: headrace train --text python-stdlib --test --verbose"
    line = re.compile(r"Batch tokenized [1-9]\d* samples in \d+\.\dms \(\d+\.\dms per sample\)")
    assert [text for text in rest if line.fullmatch(text)]
    assert re.search(r"^steps +20, 10\.2 k tokens", done.stdout, re.M)
    assert (tmp_path / "runs" / "transformer-nano-python-stdlib" / "checkpoints").is_dir()


def test_train_slimpajama_on_data_of_ones_own(script: Script, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "tales.jsonl", make_texts(60))
    line = (
        "examples/train_slimpajama.py --test --text tales.jsonl --tokenizer bytes --max-chunks 2 --tokens-per-chunk 300"
    )
    done = script(f"{line} --no-tensorboard --json")
    assert done.stderr.startswith("This is: headrace train --test --text tales.jsonl")
    assert json.loads(done.stdout)["tokens"] == 600  # longer than the context of nano, so --test takes another size


# scripts/diagnose_cpu_bottleneck.py

BOTTLENECK = "scripts/diagnose_cpu_bottleneck.py"


def write_run(folder: Path, *, age: float) -> None:
    log = EventLog(folder / "events.jsonl")
    for event in a_run(50):
        log.write_event(event)
    log.close()
    then = time.time() - age
    os.utime(folder / "events.jsonl", (then, then))


def test_options_before_the_script_are_ours_and_those_behind_it_are_its_own() -> None:
    words = ["--html", "page.html", "--warm_up=2", "--json", "train.py", "--batch_size", "8", "--json"]
    assert split_options(words) == (
        ["--html", "page.html", "--warm-up", "2", "--json"],
        ["train.py", "--batch_size", "8", "--json"],
    )


def test_the_bottleneck_of_a_script(script: Script, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys; print(sys.argv[1:]); sys.exit(3)\n")
    done = script(f"{BOTTLENECK} --warmup 2 mine.py --batch_size 8", check=3)
    assert done.stderr.startswith(
        f"This is: headrace diagnose run --warmup 2 -- {sys.executable} mine.py --batch_size 8\n"
    )


def test_the_bottleneck_of_a_run(script: Script, tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "mine", age=0)
    done = script(f"{BOTTLENECK} --json runs/mine")
    assert done.stderr == "This is: headrace diagnose training runs/mine --json\n"
    assert json.loads(done.stdout)["kind"] == "training"


def test_the_newest_run_where_nothing_is_named(script: Script, tmp_path: Path) -> None:
    for name, age in (("a", 50), ("b", 10), ("c", 90)):
        write_run(tmp_path / "runs" / name, age=age)
    (tmp_path / "runs" / "empty").mkdir()
    assert newest_run(Path("runs")) == Path("runs/b")
    assert script(BOTTLENECK).stderr == "This is: headrace diagnose training runs/b\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "No script is named, and there is no run in runs/."),
        (" gone.py --lr 1", "gone.py: there is no such script and no such run."),
    ],
)
def test_no_script_and_no_run(script: Script, words: str, said: str) -> None:
    done = script(BOTTLENECK + words, check=2)
    assert done.stderr.startswith(f"error: {said}")
    assert "python scripts/diagnose_cpu_bottleneck.py train.py ARGS" in done.stderr
