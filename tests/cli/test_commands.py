"""The commands as a new user types them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest_pipeline import make_texts, write_jsonl

Headrace = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def prepared(headrace: Headrace, corpus: Path, tmp_path: Path) -> Path:
    headrace("prepare", corpus, "--out", tmp_path / "out", "--val-fraction", "0.1", "--chunk-size", "256")
    return tmp_path / "out"


def test_prepare_for_people(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    done = headrace("prepare", corpus, "--out", tmp_path / "out")
    assert "Tokenizing with gigatoken: exact on" in done.stderr
    for word in ("Prepared", "3,501 documents", "bytes per token", "headrace inspect"):
        assert word in done.stdout, word


def test_prepare_for_scripts(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    result = json.loads(headrace("prepare", corpus, "--out", tmp_path / "out", "--json").stdout)
    assert result["documents"] == 3501
    assert result["num_chunks"] == result["total_tokens"] // 2048
    assert set(result["stage_shares"]) == {"read", "tokenize", "verify", "write"}


def test_the_flags_of_the_guides(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    done = headrace(
        "prepare", "--dataset", corpus, "--chunk_size", 64, "--num_proc", 2, "--batch_size", 100, "--output",
        tmp_path / "out", "--tokenizer", "bytes", "--max_chunks", 5, "--force", "--json",
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert (result["chunk_size"], result["num_chunks"], result["tokenizer"]) == (64, 5, "bytes")


def test_default_folder(headrace: Headrace, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "stories.jsonl", make_texts(5))
    headrace("prepare", "stories.jsonl", "-t", "bytes", cwd=tmp_path)
    assert (tmp_path / "data" / "stories" / "metadata.json").is_file()


def test_dry_run_writes_nothing(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    done = headrace("prepare", corpus, "--out", tmp_path / "out", "--dry-run")
    assert "nothing was written" in done.stdout
    assert not (tmp_path / "out").exists()
    plan = json.loads(headrace("prepare", corpus, "--out", tmp_path / "out", "--dry-run", "--json").stdout)
    assert (plan["files"], plan["vocab_size"]) == (3, 32768)


def test_inspect(headrace: Headrace, prepared: Path) -> None:
    text = headrace("inspect", prepared).stdout
    for word in ("tokens", "Document lengths", "█", "bytes/token", "set aside", "a.jsonl"):
        assert word in text, word
    statistics = json.loads(headrace("inspect", prepared, "--json").stdout)
    assert sum(row["documents"] for row in statistics["length_histogram"]) == statistics["documents"]
    val = json.loads(headrace("inspect", prepared, "--split", "val", "--json").stdout)
    assert val["documents"] == statistics["val_documents"] > 200


def test_inspect_a_chunk_shows_where_documents_begin(headrace: Headrace, prepared: Path) -> None:
    text = headrace("inspect", prepared, "--chunk", 0).stdout
    assert text.count("a document begins") > 2
    assert "Document 0." in text
    chunk = json.loads(headrace("inspect", prepared, "--chunk", 1, "--chunk-size", 100, "--json").stdout)
    assert len(chunk["tokens"]) == 100
    assert len(chunk["pieces"]) in (len(chunk["document_starts"]), len(chunk["document_starts"]) + 1)
    document = json.loads(headrace("inspect", prepared, "--document", 0, "--json").stdout)
    assert document["text"].startswith("Document 0.")


def test_a_document_cannot_steer_the_terminal(headrace: Headrace, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", ["before \x1b[31mred\x07 after"])
    headrace("prepare", tmp_path / "a.jsonl", "--out", tmp_path / "out", "-t", "bytes")
    text = headrace("inspect", tmp_path / "out", "--document", 0).stdout
    assert "before ␛[31mred␇ after" in text


def test_verify(headrace: Headrace, prepared: Path) -> None:
    assert "every checksum, count and id is right" in headrace("verify", prepared, "--tokens").stdout
    shard = prepared / "shard-00000.bin"
    data = bytearray(shard.read_bytes())
    data[1000] ^= 1
    shard.write_bytes(data)
    done = headrace("verify", prepared, check=1)
    assert "shard-00000.bin: the tokens are not those that were written" in done.stdout
    report = json.loads(headrace("verify", prepared, "--json", check=1).stdout)
    assert report["ok"] is False


def test_verify_tokens_finds_ids_that_no_tokenizer_gives(headrace: Headrace, prepared: Path) -> None:
    """Bytes and checksums agree, but the ids are not the reference's: only --tokens can see it."""
    import xxhash

    shard = prepared / "shard-00000.bin"
    data = bytearray(shard.read_bytes())
    data[0:2], data[2:4] = data[2:4], data[0:2]
    before = xxhash.xxh3_128(shard.read_bytes()).hexdigest()
    shard.write_bytes(data)
    metadata = prepared / "metadata.json"
    metadata.write_text(metadata.read_text().replace(before, xxhash.xxh3_128(bytes(data)).hexdigest()))
    headrace("verify", prepared)
    assert "document 0: the reference engine encodes its text to other ids" in headrace(
        "verify", prepared, "--tokens", check=1
    ).stdout.replace("\n", " ")


def test_verify_looks_at_the_tokenizer_and_at_packing_plans(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = headrace("prepare", corpus, "--out", out, "--packing", "best-fit")
    assert "best-fit chunks" in done.stdout
    headrace("verify", out)
    plan = out / "bestfit-train-2048.pieces.npy"
    data = bytearray(plan.read_bytes())
    data[-1] ^= 1
    plan.write_bytes(data)
    assert "the plan is not the one that was written" in headrace("verify", out, check=1).stdout
    vocabulary = out / "tokenizer" / "headrace-32k.json"
    vocabulary.write_text(vocabulary.read_text().replace("Ġthe", "Ġteh", 1))
    assert "tokenizer/" in headrace("verify", out, check=1).stdout


def test_dry_run_knows_the_eos_token(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    headrace("prepare", corpus, "--out", tmp_path / "out", "--dry-run", "--eos-token", "<|end|>")
    done = headrace("prepare", corpus, "--out", tmp_path / "out", "--dry-run", "--eos-token", "<nope>", check=2)
    assert "has no such token" in done.stderr


def test_tokenizer_check_bench_and_train(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    text = headrace("tokenizer", "check", "headrace-32k", corpus).stdout
    assert "gigatoken  exact, " in text
    assert "fastokens  exact, " in text
    new = tmp_path / "mine.json"
    headrace("tokenizer", "train", corpus, "--vocab-size", 600, "--out", new)
    report = json.loads(headrace("tokenizer", "check", new, corpus, "--json").stdout)
    assert all(engine["exact"] for engine in report["engines"])
    times = json.loads(headrace("tokenizer", "bench", new, corpus, "--rounds", 1, "--megabytes", 0.3, "--json").stdout)
    assert [row["engine"] for row in times["engines"]] == ["gigatoken", "fastokens", "tokenizers"]
    assert len({row["bytes_per_token"] for row in times["engines"]}) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["prepare"], 2, "No SOURCE given"),
        (["prepare", "no-such-*.jsonl"], 2, "no-such-*.jsonl"),
        (["prepare", "tinystorys"], 2, "tinystories"),
        (["prepare", "CORPUS", "--chunk-size", "0"], 2, "--chunk-size 0: it must be at least 1"),
        (["prepare", "CORPUS", "--tokenizer", "CORPUS/c.txt"], 2, "does not look like a tokenizer"),
        (["prepare", "CORPUS", "--eos-token", "<nope>"], 2, "has no such token"),
        (["prepare", "CORPUS", "--dtype", "int64"], 2, "int64"),
        (["inspect", "CORPUS"], 1, "is not a Headrace dataset"),
        (["inspect", "nowhere"], 1, "headrace prepare SOURCE --out nowhere"),
        (["verify", "nowhere"], 1, "There is no dataset at nowhere"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_mistakes(
    headrace: Headrace, corpus: Path, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    arguments = [argument.replace("CORPUS", str(corpus)) for argument in arguments]
    done = headrace(*arguments, check=code, cwd=tmp_path)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_are_json_too(headrace: Headrace, tmp_path: Path) -> None:
    for wrong in (["no-such-*.jsonl"], ["--no-such-flag"]):
        done = headrace("prepare", *wrong, "--json", check=2, cwd=tmp_path)
        assert json.loads(done.stdout)["exit_code"] == 2


def test_rejected_data_has_its_own_exit_code(headrace: Headrace, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n{"text": 7}\n')
    done = headrace("prepare", tmp_path / "bad.jsonl", "--out", tmp_path / "out", check=3)
    assert "bad.jsonl, line 2" in done.stderr


def test_a_cut_zst_is_refused_with_its_name(headrace: Headrace, corpus: Path, tmp_path: Path) -> None:
    cut = corpus / "b.jsonl.zst"
    os.truncate(cut, cut.stat().st_size // 2)
    done = headrace("prepare", cut, "--out", tmp_path / "out", check=3)
    assert "b.jsonl.zst" in done.stderr
    assert "--keep-damaged" in done.stderr


def test_chunk_out_of_range(headrace: Headrace, prepared: Path) -> None:
    assert "There is no chunk 99999" in headrace("inspect", prepared, "--chunk", 99999, check=2).stderr
