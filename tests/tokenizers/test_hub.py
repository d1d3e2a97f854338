"""Tokenizers by their ids on the hub."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from conftest_hub import TOKEN, small_tokenizer
from headrace.errors import TokenizerError, Unreachable
from headrace.tokenizers import load_tokenizer
from hub_server import HubServer

FILES = {
    "tokenizer.json": small_tokenizer(),
    "tokenizer_config.json": json.dumps({"eos_token": "<|end|>"}).encode(),
    "model.safetensors": bytes(100_000),
    "README.md": b"x",
}


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch):
    return lambda: monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_only_its_files_come_and_then_none(stand_in: HubServer, tmp_path: Path, offline):
    commit = stand_in.push("models", "o/n", FILES)
    tokenizer = load_tokenizer("o/n")
    assert tokenizer.special.eos == tokenizer.token_id("<|end|>")
    assert [request.method for request in stand_in.asked("safetensors")] == []
    folder = tmp_path / "hub-cache" / "models--o--n" / "snapshots" / commit
    assert sorted(path.name for path in folder.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    sent = stand_in.sent()
    load_tokenizer("o/n")
    assert stand_in.sent() == sent
    asked = len(stand_in.requests)
    offline()
    assert load_tokenizer("o/n").sha256 == tokenizer.sha256
    assert len(stand_in.requests) == asked


def test_gpt2_is_the_hubs(stand_in: HubServer):
    stand_in.push("models", "openai-community/gpt2", FILES)
    stand_in.renamed["gpt2"] = "openai-community/gpt2"
    assert (load_tokenizer("gpt2").kind, load_tokenizer("gpt2").vocab_size) == ("hf", 258)


def test_a_sentencepiece_model(stand_in: HubServer, real_tokenizers: dict[str, Path]):
    stand_in.push("models", "o/n", {"tokenizer.model": real_tokenizers["mistral"].read_bytes()})
    assert load_tokenizer("o/n").kind == "sentencepiece"


def test_a_revision(stand_in: HubServer, offline):
    first = stand_in.push("models", "o/n", FILES)
    stand_in.push("models", "o/n", {**FILES, "tokenizer_config.json": b"{}"})
    newest, pinned = load_tokenizer("o/n"), load_tokenizer(f"o/n@{first}")
    assert pinned.special.eos == pinned.token_id("<|end|>") != newest.special.eos
    assert "has no revision 'v9'" in refused("o/n@v9")
    offline()
    assert load_tokenizer(f"o/n@{first}").special == pinned.special
    assert load_tokenizer("o/n").special == newest.special


def refused(name: str, kind: type[Exception] = TokenizerError) -> str:
    with pytest.raises(kind) as caught:
        load_tokenizer(name)
    return str(caught.value)


def test_what_the_hub_does_not_have(stand_in: HubServer):
    stand_in.push("models", "o/n", {"README.md": b"x"})
    assert "The hub has no public model 'nobody/nothing'" in refused("nobody/nothing")
    message = "'o/n' on the hub has none of tokenizer.json, tekken.json, tokenizer.model. Look at"
    assert f"{message} {stand_in.endpoint}/o/n" in refused("o/n")
    assert "there is no such file or folder" in refused("a/b/c")


def test_a_gated_model(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    stand_in.push("models", "o/n", FILES)
    stand_in.gate("models", "o/n", TOKEN)
    assert re.search(rf"is gated. Accept its terms at {stand_in.endpoint}/o/n, set HF_TOKEN", refused("o/n"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert load_tokenizer("o/n").vocab_size == 258


def test_files_from_elsewhere_get_no_token(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    stand_in.push("models", "o/n", FILES)
    stand_in.signature = "signed"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    load_tokenizer("o/n")
    assert {request.token for request in stand_in.requests if request.elsewhere} == {None}


def test_offline_without_a_copy(stand_in: HubServer, offline, tmp_path: Path):
    stand_in.push("models", "o/n", FILES)
    offline()
    assert "HF_HUB_OFFLINE is set" in refused("o/n")


def test_half_a_copy_is_none(stand_in: HubServer, offline, tmp_path: Path):
    """Without its config the end of a document would be another token."""
    stand_in.push("models", "o/n", FILES)
    load_tokenizer("o/n")
    cache = tmp_path / "hub-cache" / "models--o--n"
    next(cache.rglob("snapshots/*/tokenizer_config.json")).unlink()
    shutil.rmtree(cache / ".no_exist")
    offline()
    assert "HF_HUB_OFFLINE is set" in refused("o/n")


def test_trouble_passes_or_is_said(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    stand_in.push("models", "o/n", FILES)
    stand_in.fail("/api/models/o/n", "503", 2)
    assert load_tokenizer("o/n").vocab_size == 258
    stand_in.push("models", "p/q", FILES)
    stand_in.fail("/api/models/p/q", "500", 99)
    assert re.search(r"'p/q' at .*500 Internal Server Error", refused("p/q", Unreachable))
    monkeypatch.setattr("headrace.hub.WAITS", ())
    stand_in.push("models", "r/s", FILES)
    stand_in.fail("/api/models/r/s", "stall")
    assert "gave no answer for 1 s" in refused("r/s", Unreachable)
