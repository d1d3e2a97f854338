"""Names, files and folders that are no tokenizer: each gets an error with the value, the rule and the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import TokenizerError
from headrace.tokenizers import load_tokenizer


def refused(name: str | Path) -> str:
    with pytest.raises(TokenizerError) as caught:
        load_tokenizer(name)
    return str(caught.value)


def test_not_json(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("this is no JSON")
    assert "is not JSON" in refused(tmp_path / "tokenizer.json")


def test_json_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"a": 1}')
    message = refused(tmp_path)
    assert "has no 'model' entry" in message
    assert "headrace-32k" in message


def test_json_that_the_library_cannot_load(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "Nonsense"}}')
    assert "'tokenizers' can load" in refused(tmp_path)


def test_broken_sentencepiece_model(tmp_path: Path) -> None:
    (tmp_path / "x.model").write_bytes(b"\x00\x01 not a model")
    assert "is not a SentencePiece model" in refused(tmp_path / "x.model")


def test_broken_rank_file(tmp_path: Path) -> None:
    (tmp_path / "cl100k_base.tiktoken").write_text("IQ== 0\nnot base64 at all\n")
    assert "line 2 is not 'BASE64 RANK'" in refused(tmp_path / "cl100k_base.tiktoken")


def test_rank_file_of_unknown_pattern(tmp_path: Path) -> None:
    (tmp_path / "mine.tiktoken").write_text("IQ== 0\n")
    assert "does not carry its split pattern" in refused(tmp_path / "mine.tiktoken")


def test_broken_tekken(tmp_path: Path) -> None:
    (tmp_path / "tekken.json").write_text('{"config": {}}')
    assert "is not a tekken.json" in refused(tmp_path / "tekken.json")


def test_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    assert "does not look like a tokenizer" in refused(tmp_path / "photo.png")


def test_folder_without_one(tmp_path: Path) -> None:
    assert "holds no tokenizer.json" in refused(tmp_path)


def test_path_that_is_not_there() -> None:
    assert "there is no such file or folder" in refused("./no/such/tokenizer.json")


def test_unknown_name_offline() -> None:
    assert "the hub did not give it" in refused("someone/unheard-of-model")


def test_folder_with_config_names_its_eos(tmp_path: Path) -> None:
    source = Path(load_tokenizer("headrace-32k").files[0])
    (tmp_path / "tokenizer.json").write_bytes(source.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "<|end|>"}, "pad_token": null}')
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.special.eos == tokenizer.token_id("<|end|>")


def test_another_eos_by_name() -> None:
    tokenizer = load_tokenizer("headrace-32k").with_eos("<|end|>")
    assert tokenizer.special.eos == tokenizer.token_id("<|end|>")
    with pytest.raises(TokenizerError, match="has no such token"):
        tokenizer.with_eos("<|nothing|>")
