"""headrace train, sample and export as a user types them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest_cli import Headrace
from conftest_pipeline import make_texts, write_jsonl
from headrace import Loader, prepare

SMALL = ("--size", "nano", "--seq-len", 64, "--batch-size", 4, "--eval-batches", 1, "--no-tensorboard")
MODEL = """
from torch import nn

class Pairs(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, tokens, targets):
        return nn.functional.cross_entropy(self.table(tokens).flatten(0, 1), targets.flatten())

def build(vocab_size, size):
    return Pairs(vocab_size)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two prepared datasets and their text."""
    folder = tmp_path_factory.mktemp("place")
    for name, count in (("tales", 300), ("notes", 100)):
        write_jsonl(folder / f"{name}.jsonl", make_texts(count))
        prepare(folder / f"{name}.jsonl", out=folder / "data" / name, tokenizer="bytes", chunk_size=64)
    (folder / "mine.py").write_text(MODEL)
    return folder


@pytest.fixture
def train(headrace_here: Headrace, place: Path, monkeypatch: pytest.MonkeyPatch) -> Headrace:
    """`headrace train`, where the datasets are data/tales and data/notes."""
    monkeypatch.chdir(place)
    return lambda *words, **options: headrace_here("train", *words, **options)


def trained(train: Headrace) -> Path:
    """A run of 4 steps in runs/trained; the first test that needs it makes it."""
    out = Path("runs/trained")
    if not out.exists():
        train("data/tales", *SMALL, "--steps", 4, "--eval-every", 2, "--out", out)
    return out


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    return [event for event in found if event["kind"] == kind]


def last_step(done: Any) -> int:
    return int(json.loads(done.stdout)["step"])


# A run and its folder


def test_summary_and_files(train: Headrace, tmp_path: Path) -> None:
    words = ("data/tales", *SMALL[:-1], "--steps", 4, "--eval-every", 2, "--log-every", 2, "--out", tmp_path / "run")
    result = json.loads(train(*words, "--json").stdout)
    assert (result["step"], result["tokens"], result["device"]) == (4, 4 * 4 * 64, "cpu")
    assert 0 < result["val_loss"] < 6
    assert result["tokens_per_second"] > 0
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "run.json", "checkpoints", "tokenizer", "events.jsonl", "metrics_history.json", "text_samples.json",
        "tensorboard", "curves.png",
    }  # fmt: skip
    assert [event["step"] for event in events(tmp_path / "run", "step")] == [2, 4]
    assert [event["step"] for event in events(tmp_path / "run", "eval")] == [2, 4]
    samples = json.loads((tmp_path / "run" / "text_samples.json").read_text())
    assert samples[-1]["step"] == 4
    assert samples[-1]["prompt"] + samples[-1]["expected"] != ""


def test_for_people(train: Headrace) -> None:
    done = train("data/tales", *SMALL, "--steps", 2, "--log-every", 1)
    assert re.search(r"^steps +2, 512 tokens in", done.stdout, re.M)
    assert re.search(r"^val +\d\.\d{4}, perplexity", done.stdout, re.M)
    assert "headrace sample runs/transformer-nano-tales --prompt" in done.stdout
    assert re.search(r"step 2/2 +loss \d", done.stderr)


def test_the_same_command_goes_on(train: Headrace, tmp_path: Path) -> None:
    shutil.copytree(trained(train), tmp_path / "run")
    words = ("data/tales", *SMALL, "--eval-every", 2, "--out", tmp_path / "run")
    longer = train(*words, "--steps", 6)
    assert "Going on from step 4" in longer.stderr
    assert "The run had 4 steps before and has 6 now." in longer.stderr
    assert [event["step"] for event in events(tmp_path / "run", "eval")] == [2, 4, 6]
    again = train(*words, "--steps", 6)
    assert "Going on from step 6" in again.stderr
    assert "nan" not in again.stdout
    assert [event["step"] for event in events(tmp_path / "run", "eval")] == [2, 4, 6]


def test_other_settings_are_refused_with_the_difference(train: Headrace) -> None:
    out = trained(train)
    before = sorted(path.name for path in (out / "checkpoints").iterdir())
    words = ("data/tales", *SMALL, "--steps", 4, "--out", out)
    done = train(*words, "--optimizer", "muon", "--seed", 8, check=2)
    assert "train.optimizer: 'adamw' then, 'muon' now" in done.stderr
    assert "recipe.seed: 0 then, 8 now" in done.stderr
    assert "--force" in done.stderr
    assert sorted(path.name for path in (out / "checkpoints").iterdir()) == before


def test_force_starts_over(train: Headrace, tmp_path: Path) -> None:
    shutil.copytree(trained(train), tmp_path / "run")
    words = ("data/tales", *SMALL, "--steps", 2, "--lr", 0.002, "--out", tmp_path / "run")
    assert last_step(train(*words, "--force", "--json")) == 2
    checkpoints = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert checkpoints == ["step-00000001", "step-00000002"]


def test_force_deletes_only_what_a_run_writes(train: Headrace, tmp_path: Path) -> None:
    shutil.copytree(trained(train), tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    train("data/tales", *SMALL, "--steps", 1, "--out", tmp_path / "run", "--force")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_a_folder_of_something_else_is_left_alone(train: Headrace, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    done = train("data/tales", *SMALL, "--out", tmp_path, "--force", check=2)
    assert "holds other files and is no run of Headrace" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_terminated_and_gone_on_with(train: Headrace, place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = [
        "data/tales", "--size", "nano", "--seq-len", 16, "--batch-size", 1, "--steps", 300, "--eval-every", 150,
        "--eval-batches", 1, "--log-every", 1, "--no-tensorboard", "--out", out,
    ]  # fmt: skip
    command = [sys.executable, "-m", "headrace", "train", *map(str, words)]
    with subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (out.exists() and (out / "events.jsonl").exists()):
            time.sleep(0.05)
        while process.poll() is None and not events(out, "step"):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 75, stderr
    stopped = re.search(r"Stopped by SIGTERM after step (\d+); everything is saved. Run the same command again", stderr)
    assert stopped, stderr
    done = train(*words)
    assert f"Going on from step {stopped[1]} " in done.stderr
    assert [event["step"] for event in events(out, "step")] == list(range(1, 301))


# How long, and on what


@pytest.mark.parametrize(
    ("words", "steps", "tokens"),
    [
        (("--max-chunks", 6, "--batch_size", 2, "--tokens_per_chunk", 32), 3, 6 * 32),
        (("--max-chunks", 10, "--seq-len", 32), 1, 10 * 32),  # fewer than a usual batch: a run all the same
        (("--max-chunks", 9, "--batch-size", 2, "--gradient_accumulation", 2, "--seq-len", 16), 2, 8 * 16),
        (("--test", "--max-chunks", 3, "--seq-len", 16), 1, 3 * 16),
        (("--steps", 2, "--epochs", 3, "--batch-size", 2, "--seq-len", 16, "--num_workers", 8), 2, 4 * 16),
    ],
)
def test_how_long(train: Headrace, tmp_path: Path, words: tuple[object, ...], steps: int, tokens: int) -> None:
    fixed = ("data/tales", "--config", "nano", "--eval-batches", 1, "--no-tensorboard", "--out", tmp_path / "run")
    result = json.loads(train(*fixed, *words, "--json").stdout)
    assert (result["step"], result["tokens"]) == (steps, tokens)


def test_epochs_count_the_chunks_that_are_trained_on(train: Headrace, tmp_path: Path) -> None:
    whole = Loader("data/notes", seq_len=64, batch_size=4, holdout=0.01).steps_per_epoch
    done = train("data/notes", *SMALL, "--epochs", 0.05, "--out", tmp_path / "run", "--json")
    assert last_step(done) == int(0.05 * whole) > 1


def test_options_of_the_model(train: Headrace, headrace_here: Headrace, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("layers=1", "context=512", "rope_base=500", "document_mask=dense", "tied=false")
    words = [word for option in options for word in ("--model-option", option)]
    train("data/tales", *SMALL, "--steps", 1, *words, "--out", out)
    told = json.loads((out / "run.json").read_text())["recipe"]["model"]
    wanted = {"layers": 1, "context": 512, "rope_base": 500, "document_mask": "dense", "tied": False}
    assert told["options"] == wanted
    assert told["context"] == 512
    (run,) = events(out, "run")
    from headrace import build_model

    model = build_model("transformer", "nano", vocab_size=told["vocab_size"], **wanted)
    assert run["parameters"] == model.parameter_count()
    headrace_here("sample", out, "--prompt", "word", "-n", 2)
    again = train("data/tales", *SMALL, "--steps", 1, "--model-option", "layers=2", "--out", out, check=2)
    assert "recipe.model.options.layers: 1 then, 2 now" in again.stderr


def test_a_mixture(train: Headrace, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("data/tales=0.75", "--data", "data/notes=0.25", *SMALL, "--steps", 2, "--out", out)
    (run,) = events(out, "run")
    assert run["datasets"] == ["data/tales", "data/notes"]
    recipe = json.loads((out / "run.json").read_text())["recipe"]
    assert recipe["data"] == [[0, [["data/tales", 0.75], ["data/notes", 0.25]]]]


def test_pretokenized_by_its_name(train: Headrace, tmp_path: Path) -> None:
    words = ("--dataset", "notes", "--pretokenized", *SMALL, "--steps", 1, "--out", tmp_path / "run")
    assert last_step(train(*words, "--json")) == 1
    assert events(tmp_path / "run", "run")[0]["datasets"] == ["data/notes"]


def test_live_text_says_what_it_tokenizes(train: Headrace, tmp_path: Path) -> None:
    words = (
        "--text",
        "notes.jsonl",
        "-t",
        "bytes",
        *SMALL,
        "--steps",
        2,
        "--num-workers",
        2,
        "--out",
        tmp_path / "run",
    )
    done = train(*words, "--verbose")
    line = re.compile(r"Batch tokenized [1-9]\d* samples in \d+\.\dms \(\d+\.\dms per sample\)")
    assert [text for text in done.stderr.splitlines() if line.fullmatch(text)]
    assert re.search(r"^steps +2, 512 tokens", done.stdout, re.M)
    quiet = train(*words, "--force")
    assert "Batch tokenized" not in quiet.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "No DATA given"),
        (["data/x"], 1, "No chunks found in data/x. Make them with: headrace prepare SOURCE --out data/x"),
        (["data/tinystories"], 1, "Make them with: headrace prepare tinystories --out data/tinystories"),
        (
            ["--dataset", "cerebras/SlimPajama-627B", "--pretokenized"],
            1,
            "headrace prepare cerebras/SlimPajama-627B --out data/SlimPajama-627B",
        ),
        (["data/tales", "--size", "huge"], 2, "size 'huge': transformer comes in nano, micro"),
        (["data/tales", "--model", "rnn"], 2, "model 'rnn': there is transformer"),
        (
            ["data/tales", "--size", "nano", "--seq-len", "512"],
            2,
            "nano has a context of 256 tokens. Use --seq-len 256",
        ),
        (["data/tales", "--model-option", "layers"], 2, "--model-option layers: write NAME=VALUE"),
        (["data/tales", "--model-option", "depth=3"], 2, "option 'depth': transformer has vocab_size, context"),
        (["data/tales", "--model-option", "layers=many"], 2, "option layers 'many': transformer takes int there"),
        (["data/tales", "--model-option", "layers=true"], 2, "option layers True: transformer takes int there"),
        (["data/tales", "--model-option", "vocab_size=9"], 2, "the tokenizer of the data decides that"),
        (["data/tales", "--model-option", "layers=1", "--model-option", "layers=2"], 2, "layers is given twice"),
        (["data/tales=0.5", "data/notes"], 2, "data/notes has no weight"),
        (["data/tales=half"], 2, "'half' is no weight"),
        (["data/tales=0.5", "data/tales=0.5"], 2, "named twice"),
        (["data/tales", "--text", "notes.jsonl"], 2, "data/tales is prepared and --text is not"),
        (
            ["--text", "notes.jsonl", "--epochs", "1"],
            2,
            "Give --steps, or prepare it once: headrace prepare notes.jsonl",
        ),
        (["data/tales", "--batch-size", "0"], 2, "batch_size 0"),
        (["data/tales", "--seq-len", "0"], 2, "0 is not in the range x>=1"),
        (["data/tales", "--max-chunks", "8", "--gradient-accumulation", "0"], 2, "0 is not in the range x>=1"),
        (
            ["data/tales", "--batch-size", "8", "--max-chunks", "5", "--size", "nano"],
            2,
            "do not fill one step of 8 x 1",
        ),
    ],
)
def test_mistakes(train: Headrace, words: list[str], code: int, message: str) -> None:
    done = train(*words, check=code)
    assert message in done.stderr


def test_a_mistake_leaves_no_folder(train: Headrace, tmp_path: Path) -> None:
    train("data/tales", *SMALL, "--seq-len", 512, "--out", tmp_path / "run", check=2)
    assert not (tmp_path / "run").exists()


def test_8_bit_without_bitsandbytes(train: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bitsandbytes", "bitsandbytes.optim"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "headrace.training.adamw8bit", raising=False)
    done = train("data/tales", *SMALL, "--steps", 1, "--use_8bit_optim", "--out", tmp_path / "run", check=1)
    assert "the 8-bit optimizer needs the package 'bitsandbytes'. Run: pip install 'headrace[8bit]'" in done.stderr


# What comes out of it


def test_sample(train: Headrace, headrace_here: Headrace) -> None:
    out = trained(train)
    words = ("sample", out, "--prompt", "Document ", "--prompt", "word", "-n", 8)
    text = headrace_here(*words)
    assert text.stdout.startswith("Document ")
    assert "step 4" in text.stderr
    found = json.loads(headrace_here(*words, "--json").stdout)
    assert [sample["prompt"] for sample in found["samples"]] == ["Document ", "word"]
    assert text.stdout == "".join(f"{sample['prompt']}{sample['text']}\n\n" for sample in found["samples"])
    other = json.loads(headrace_here(*words, "--seed", 1, "--checkpoint", "best", "--json").stdout)
    assert other["samples"] != found["samples"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 1, "nowhere has no checkpoints"),
        (["runs/trained", "--checkpoint", "7"], 2, "no checkpoint of step 7. Its steps are: 2, 4."),
        (["runs/trained", "--checkpoint", "newest"], 2, "it must be latest, best or a step"),
    ],
)
def test_mistakes_in_sampling(
    train: Headrace, headrace_here: Headrace, words: list[str], code: int, message: str
) -> None:
    trained(train)
    assert message in headrace_here("sample", *words, check=code).stderr


def test_export_loads_in_transformers(train: Headrace, headrace_here: Headrace, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from headrace.training import load_run

    out = trained(train)
    result = json.loads(headrace_here("export", out, "--out", tmp_path / "llama", "--json").stdout)
    assert result == {"out": str(tmp_path / "llama"), "format": "llama", "step": 4}
    tokens = torch.tensor([list(b"Document 7. word7")])
    with torch.no_grad():
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "llama")(tokens).logits
        ours = load_run(out, checkpoint="best").model(tokens)
    torch.testing.assert_close(theirs, ours)


def test_a_model_of_the_users_own(train: Headrace, headrace_here: Headrace, tmp_path: Path) -> None:
    words = ("data/notes", "--model", "mine.py:build", "--seq-len", 64, "--batch-size", 4, "--no-tensorboard")
    result = json.loads(train(*words, "--steps", 3, "--lr", 0.1, "--json").stdout)
    assert result["out"] == "runs/mine-micro-notes"
    assert result["step"] == 3
    headrace_here("export", result["out"], "--format", "safetensors", "--out", tmp_path / "mine.safetensors")
    assert (tmp_path / "mine.safetensors").stat().st_size > 259 * 259 * 4
    assert "it cannot write text" in headrace_here("sample", result["out"], check=2).stderr
