"""The hub from the command line, with the commands that the guide shows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest_hub import TOKEN, environment, jsonl, long_texts, make_texts, parquet, small_tokenizer, zst
from headrace import TokenStore
from hub_server import HubServer

GUIDE = Path(__file__).parents[2] / "docs" / "prepare.md"
FINEWEB = {f"sample/10BT/{number:03}_00000.parquet": parquet(long_texts(1_300, seed=number), 10) for number in (0, 1)}
SLIM = {f"validation/chunk1/example_holdout_{n}.jsonl.zst": zst(jsonl(make_texts(60, 60 * n))) for n in range(3)}
OTHERS = {"validation/chunk2/example_holdout_0.jsonl.zst": zst(jsonl(["not asked for"])), "README.md": b"x"}


def commands() -> list[list[str]]:
    section = GUIDE.read_text(encoding="utf-8").split("### The hub\n")[1].split("\n## ")[0]
    return [shlex.split(line) for line in re.findall(r"^headrace .+$", section, re.M)]


class Told(NamedTuple):
    hub: HubServer
    folder: Path
    commits: dict[str, str]
    words: str  # all that was printed

    def run(self, *words: str, check: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "headrace", *words],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=self.folder,
            env=environment(self.hub, self.folder / "home", **variables),
        )
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory):
    """The guide's commands, run as written on a hub that keeps bytes elsewhere and wants a token for one dataset."""
    hub = HubServer()
    commits = {
        "fineweb": hub.push("datasets", "HuggingFaceFW/fineweb-edu", {**FINEWEB, "README.md": b"x"}),
        "slim": hub.push("datasets", "cerebras/SlimPajama-627B", {**SLIM, **OTHERS}),
        "gpt2": hub.push("models", "openai-community/gpt2", {"tokenizer.json": small_tokenizer(), "w.bin": b"x"}),
    }
    hub.renamed["gpt2"] = "openai-community/gpt2"
    hub.gate("datasets", "cerebras/SlimPajama-627B", TOKEN)
    hub.signature = "signed"
    hub.page_entries = 2
    told = Told(hub, tmp_path_factory.mktemp("told"), commits, "")
    hub.fail("000_00000.parquet", "cut")
    words = [told.run(*command[1:], HF_TOKEN=TOKEN) for command in commands()]
    yield told._replace(words="".join(done.stdout + done.stderr for done in words))
    hub.close()


def test_a_limited_run_reads_a_small_share(told: Told) -> None:
    store = TokenStore(told.folder / "data" / "fineweb")
    assert store.num_chunks == 8
    assert store.decode(store.document(0)[:9]).startswith("document 0 ")
    assert {source.revision for source in store.metadata.sources} == {told.commits["fineweb"]}
    whole = sum(map(len, FINEWEB.values()))
    assert whole > 10_000_000
    assert 0 < told.hub.sent(".parquet") < 0.25 * whole
    assert not list((told.folder / "home").rglob("*.parquet"))


def test_a_glob_at_a_revision_with_a_tokenizer_from_the_hub(told: Told) -> None:
    store = TokenStore(told.folder / "data" / "slim")
    texts = [store.decode(store.document(number)[:-1]) for number in range(store.num_documents)]
    assert texts == make_texts(180)
    assert (store.metadata.vocab_size, store.metadata.tokenizer.kind) == (258, "hf")
    assert store.metadata.config["sources"][0]["revision"] == told.commits["slim"]
    assert told.hub.asked("w.bin") == []
    assert next((told.folder / "home").rglob(f"snapshots/{told.commits['gpt2']}/tokenizer.json"))


def test_the_token_is_for_the_hub_alone(told: Told) -> None:
    assert {request.token for request in told.hub.requests if request.elsewhere} == {None}
    assert {request.token for request in told.hub.asked("/api/datasets/cerebras")} == {TOKEN}
    assert TOKEN not in told.words
    written = [path for path in (told.folder / "data").rglob("*") if path.is_file()]
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]


def test_the_same_commands_without_a_network(told: Told) -> None:
    told.hub.push("datasets", "HuggingFaceFW/fineweb-edu", {"sample/10BT/new.parquet": b"?"})
    asked = len(told.hub.requests)
    for command, name in zip(commands(), ("fineweb", "slim"), strict=True):
        done = told.run(*command[1:], HF_HUB_OFFLINE="1")
        assert f"stays at commit {told.commits[name][:12]}" in done.stderr
        assert "prepared already" in done.stderr
    assert len(told.hub.requests) == asked


def test_refusals_have_their_exit_codes(told: Told) -> None:
    done = told.run("prepare", "slimpajama", "--out", "x", "--json", check=2, HF_TOKEN="hf_another")
    error = json.loads(done.stdout)["error"]
    assert f"Accept its terms at {told.hub.endpoint}/datasets/cerebras/SlimPajama-627B" in error
    assert "hf_another" not in done.stdout + done.stderr
    offline = told.run("prepare", "tinystories", "--out", "x", check=1, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set" in offline.stderr
    assert not (told.folder / "x").exists()
